package actors

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Deployments lets Deployments become available. There are neither ReplicaSets nor Pods.
func Deployments() fault.Actor {
	return each("Deployment controller", &appsv1.DeploymentList{}, func(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
		if d.DeletionTimestamp != nil {
			return nil
		}
		return writeStatus(ctx, c, d, func(d *appsv1.Deployment) {
			n := numberOf(d.Spec.Replicas)
			s := &d.Status
			s.ObservedGeneration = d.Generation
			s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas = n, n, n, n, 0
			available(s, appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability.")
			available(s, appsv1.DeploymentProgressing, "NewReplicaSetAvailable", "ReplicaSet has successfully progressed.")
		})
	})
}

// available sets a condition of a Deployment to True, unless it is.
func available(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, reason, message string) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind && s.Conditions[i].Status == corev1.ConditionTrue {
			return
		}
		if s.Conditions[i].Type == kind {
			s.Conditions = append(s.Conditions[:i:i], s.Conditions[i+1:]...)
			break
		}
	}
	s.Conditions = append(s.Conditions, appsv1.DeploymentCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	})
}

// DaemonSets lets DaemonSets become ready on one node. There are no Pods.
func DaemonSets() fault.Actor {
	return each("DaemonSet controller", &appsv1.DaemonSetList{}, func(ctx context.Context, c client.Client, d *appsv1.DaemonSet) error {
		if d.DeletionTimestamp != nil {
			return nil
		}
		return writeStatus(ctx, c, d, func(d *appsv1.DaemonSet) {
			d.Status = appsv1.DaemonSetStatus{
				ObservedGeneration: d.Generation, DesiredNumberScheduled: 1, CurrentNumberScheduled: 1,
				UpdatedNumberScheduled: 1, NumberReady: 1, NumberAvailable: 1,
				CollisionCount: d.Status.CollisionCount, Conditions: d.Status.Conditions,
			}
		})
	})
}

// Jobs lets Jobs start, and then complete. There are no Pods. A suspended Job waits, and one that is complete or has failed
// stays as it is, as does one whose spec names another controller (managedBy).
//
// No Job fails by itself. To let one fail, set its condition FailureTarget to True, or both FailureTarget and Failed, in
// a step or in an actor that comes before this one: Jobs sets Failed where FailureTarget is True. A step acts when the Job
// has completed already, unless it is suspended or the step creates it; an actor acts in time:
//
//	fault.Actor{Name: "failing Pods", Act: func(ctx context.Context, w *fault.World) error {
//		job := &batchv1.Job{}
//		err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "migrate"}, job)
//		if err != nil || job.Status.StartTime == nil || len(job.Status.Conditions) > 0 {
//			return client.IgnoreNotFound(err)
//		}
//		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded}}
//		return w.Client.Status().Update(ctx, job)
//	}}
func Jobs() fault.Actor {
	return each("Job controller", &batchv1.JobList{}, func(ctx context.Context, c client.Client, j *batchv1.Job) error {
		if !isActive(j) {
			return nil
		}
		return writeStatus(ctx, c, j, work)
	})
}

// isActive reports whether there is anything to do for a Job.
func isActive(j *batchv1.Job) bool {
	others := j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName
	suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
	return j.DeletionTimestamp == nil && !others && !suspended && !isTrue(j, batchv1.JobComplete) && !isTrue(j, batchv1.JobFailed)
}

func isTrue(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// work starts a Job, or ends it.
func work(j *batchv1.Job) {
	s, now := &j.Status, metav1.Now()
	if s.StartTime == nil {
		s.StartTime, s.Active, s.Ready = &now, numberOf(j.Spec.Parallelism), new(numberOf(j.Spec.Parallelism))
		return
	}
	s.Active, s.Ready, s.UncountedTerminatedPods = 0, new(int32(0)), &batchv1.UncountedTerminatedPods{}
	if at := slices.IndexFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailureTarget }); isTrue(j, batchv1.JobFailureTarget) {
		become(s, batchv1.JobFailed, s.Conditions[at].Reason, s.Conditions[at].Message)
		return
	}
	s.Succeeded, s.CompletionTime = numberOf(j.Spec.Completions), &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		if !isTrue(j, kind) {
			become(s, kind, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
		}
	}
}

// become sets a condition of a Job to True.
func become(s *batchv1.JobStatus, kind batchv1.JobConditionType, reason, message string) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
	s.Conditions = append(s.Conditions, batchv1.JobCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	})
}

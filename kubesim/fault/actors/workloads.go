package actors

import (
	"context"

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

// Jobs lets Jobs start, and then complete. There are no Pods. A suspended Job waits.
func Jobs() fault.Actor {
	return each("Job controller", &batchv1.JobList{}, func(ctx context.Context, c client.Client, j *batchv1.Job) error {
		if j.DeletionTimestamp != nil || j.Status.CompletionTime != nil || j.Spec.Suspend != nil && *j.Spec.Suspend {
			return nil
		}
		return writeStatus(ctx, c, j, func(j *batchv1.Job) {
			s, now := &j.Status, metav1.Now()
			n := numberOf(j.Spec.Completions)
			if s.StartTime == nil {
				s.StartTime, s.Active, s.Ready = &now, numberOf(j.Spec.Parallelism), new(numberOf(j.Spec.Parallelism))
				return
			}
			s.Active, s.Ready, s.Succeeded, s.CompletionTime = 0, new(int32(0)), n, &now
			s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
			for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
				s.Conditions = append(s.Conditions, batchv1.JobCondition{
					Type: kind, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached,
					Message: "Reached expected number of succeeded pods", LastProbeTime: now, LastTransitionTime: now,
				})
			}
		})
	})
}

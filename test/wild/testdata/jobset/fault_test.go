package fault

import (
	"context"
	"os"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
)

const manifest = `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: train}, spec: {suspend: true,
failurePolicy: {maxRestarts: 1}, replicatedJobs: [
{name: leader, replicas: 1, template: &job {spec: {template: {spec: {containers: [{name: c, image: busybox}]}}}}},
{name: worker, replicas: 2, dependsOn: [{name: leader, status: Complete}], template: *job}]}}`

func setUp(mgr ctrl.Manager, _ *fault.Env) error { // as main does, with certificates from outside
	if err := controllers.SetupJobSetIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("jobset")).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := controllers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("pod")).SetupWithManager(mgr); err != nil {
		return err
	}
	return webhooks.Setup(mgr)
}

func failOnce(ctx context.Context, w *fault.World) error { // the first attempt of one worker fails
	job := &batchv1.Job{}
	err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "train-worker-0"}, job)
	if err != nil || job.Labels["jobset.sigs.k8s.io/restart-attempt"] != "0" || job.Status.StartTime == nil || len(job.Status.Conditions) > 0 {
		return client.IgnoreNotFound(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded}}
	return w.Client.Status().Update(ctx, job)
}

func TestJobSet(t *testing.T) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "train"}}
	fault.Run(t, fault.Scenario{Name: "jobset", Operator: fault.Operator{AddToScheme: jobset.AddToScheme, SetUp: setUp,
		CRDs: os.DirFS("../../config/components/crd/bases"), RBAC: os.DirFS("../../config/components/rbac"), Webhooks: os.DirFS("../../config/components/webhook")},
		Actors: append([]fault.Actor{{Name: "failing worker", Act: failOnce}}, actors.All()...),
		Steps: []fault.Step{fault.CreateYAML(manifest).Becomes(js, "Suspended"),
			fault.Merge(js, `{"spec":{"suspend":false}}`).Becomes(js, "Completed"), fault.Delete(js).Gone(js)}})
}

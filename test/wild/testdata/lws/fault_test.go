package controllers_test

import (
	"errors"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"

	leaderworkersetv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/controllers"
	"sigs.k8s.io/lws/pkg/webhooks"
)

// setUp does what main does, with certificates that are ready.
func setUp(mgr ctrl.Manager, _ *fault.Env) error {
	c, s, rec := mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorder("leaderworkerset")
	return errors.Join(
		controllers.SetupIndexes(mgr.GetFieldIndexer()),
		controllers.NewLeaderWorkerSetReconciler(c, s, rec).SetupWithManager(mgr),
		controllers.NewPodReconciler(c, s, rec, nil).SetupWithManager(mgr),
		webhooks.SetupLeaderWorkerSetWebhook(mgr),
		webhooks.NewPodWebhook(nil).Setup(mgr),
	)
}

func TestFaults(t *testing.T) {
	lws := &leaderworkersetv1.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "leaderworkerset-sample", Namespace: "default"}}
	fault.Run(t, fault.Scenario{
		Name: "lws",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook"),
			AddToScheme: leaderworkersetv1.AddToScheme, SetUp: setUp,
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateFile("../../config/samples/leaderworkerset_v1_leaderworkerset.yaml").Becomes(lws, "Available"),
			fault.Merge(lws, `{"spec":{"replicas":1}}`).Becomes(lws, "Available"),
			fault.Delete(lws).Gone(lws),
		},
	})
}

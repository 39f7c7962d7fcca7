package controller

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1 "tutorial.kubebuilder.io/project/api/v1"
	webhookv1 "tutorial.kubebuilder.io/project/internal/webhook/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
)

func TestFaults(t *testing.T) {
	sample, err := os.ReadFile("../../config/samples/batch_v1_cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hourly := strings.Replace(string(sample), "*/1 * * * *", "0 * * * *", 1)
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "cronjob-sample", Namespace: "default"}}
	fault.Run(t, fault.Scenario{
		Name: "cronjob",
		Operator: fault.Operator{
			CRDs: os.DirFS("../../config/crd/bases"), RBAC: os.DirFS("../../config/rbac"), Webhooks: os.DirFS("../../config/webhook"),
			AddToScheme: batchv1.AddToScheme,
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				r := &CronJobReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
				return errors.Join(r.SetupWithManager(mgr), webhookv1.SetupCronJobWebhookWithManager(mgr))
			},
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.CreateYAML(hourly).Becomes(c, "Available"),
			fault.Wait(time.Hour).Becomes(c, "Available"),
			fault.Merge(c, `{"spec":{"suspend":true}}`),
			fault.Delete(c).Gone(c),
		},
	})
}

package eck

import (
	"context"
	"fmt"
	"testing"
	"time"

	commonv1 "github.com/elastic/cloud-on-k8s/v3/pkg/apis/common/v1"
	kbv1 "github.com/elastic/cloud-on-k8s/v3/pkg/apis/kibana/v1"
	"github.com/elastic/cloud-on-k8s/v3/pkg/controller/common/certificates"
	"github.com/elastic/cloud-on-k8s/v3/pkg/controller/common/operator"
	"github.com/elastic/cloud-on-k8s/v3/pkg/controller/common/password"
	"github.com/elastic/cloud-on-k8s/v3/pkg/controller/kibana"
	"github.com/elastic/cloud-on-k8s/v3/pkg/utils/cryptutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	"github.com/trimtab-dev/trimtab/test/wild"
)

// parameters are those of the operator's main without flags.
func parameters(mgr ctrl.Manager) (operator.Parameters, error) {
	hasher, err := cryptutil.NewPasswordHasher(5)
	if err != nil {
		return operator.Parameters{}, err
	}
	generator, err := password.NewGenerator(mgr.GetClient(), 24, "default")
	rotation := certificates.RotationParams{Validity: 365 * 24 * time.Hour, RotateBefore: 24 * time.Hour}
	return operator.Parameters{
		OperatorNamespace: "default", PasswordHasher: hasher, PasswordGenerator: generator,
		CACertRotation: rotation, CertRotation: rotation, MaxConcurrentReconciles: 1,
	}, err
}

func TestKibana(t *testing.T) {
	kb := &kbv1.Kibana{ObjectMeta: metav1.ObjectMeta{Name: "view"}, Spec: kbv1.KibanaSpec{Version: "9.1.0", Count: 1}}
	green := func(ctx context.Context, w *fault.World) error {
		var got kbv1.Kibana
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "view"}, &got); err != nil {
			return err
		}
		if got.Status.Health != commonv1.GreenHealth {
			return fmt.Errorf("the status is %+v", got.Status)
		}
		return nil
	}
	wild.Play(t, fault.Scenario{
		Name: "view",
		Operator: fault.Operator{
			CRDs:        fault.Module(t, "github.com/elastic/cloud-on-k8s/v3", "config/crds/v1/all-crds.yaml"),
			AddToScheme: kbv1.AddToScheme,
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				p, err := parameters(mgr)
				if err != nil {
					return err
				}
				return kibana.Add(mgr, p)
			},
		},
		Actors: actors.All(),
		Steps: []fault.Step{
			fault.Create(kb).Expecting(green),
			fault.Merge(kb, `{"spec":{"config":{"server.name":"view"}}}`).Expecting(green),
			fault.Delete(kb).Gone(kb),
		},
	}, 230)
}

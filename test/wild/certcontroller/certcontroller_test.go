package certcontroller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

func TestCertController(t *testing.T) {
	mounted := t.TempDir() // where a kubelet would put the Secret
	if err := os.WriteFile(filepath.Join(mounted, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "webhook-cert", Namespace: "default"}}
	none, ignore := admissionv1.SideEffectClassNone, admissionv1.Ignore
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "check.example.com", SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "webhook"}},
		}},
	}
	trusted := func(ctx context.Context, w *fault.World) error {
		var s corev1.Secret
		var h admissionv1.ValidatingWebhookConfiguration
		err := errors.Join(w.Client.Get(ctx, client.ObjectKeyFromObject(secret), &s), w.Client.Get(ctx, client.ObjectKeyFromObject(hook), &h))
		if err != nil {
			return err
		}
		if ca := s.Data["ca.crt"]; len(ca) == 0 || string(ca) != string(h.Webhooks[0].ClientConfig.CABundle) {
			return errors.New("the webhook does not trust the CA of the Secret")
		}
		return nil
	}
	var started atomic.Int64 // controllers made with NewUnmanaged need names of their own
	wild.Play(t, fault.Scenario{
		Name: "rotator",
		Operator: fault.Operator{
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				return rotator.AddRotator(mgr, &rotator.CertRotator{
					SecretKey: client.ObjectKeyFromObject(secret), CertDir: mounted,
					CAName: "ca", CAOrganization: "example", DNSName: "webhook.default.svc", CaCertDuration: 90*24*time.Hour + 4*time.Hour, RotationCheckFrequency: time.Hour,
					ControllerName: fmt.Sprint("rotator-", started.Add(1)),
					IsReady:        make(chan struct{}),
					Webhooks:       []rotator.WebhookInfo{{Name: "hook", Type: rotator.Validating}},
				})
			},
		},
		Shared: []string{"secrets", "validatingwebhookconfigurations.admissionregistration.k8s.io"},
		Before: []fault.Step{fault.Create(secret)},
		Steps: []fault.Step{
			fault.Create(hook).Expecting(trusted),
			fault.Wait(6 * time.Hour).Expecting(trusted).Named("the CA is renewed"),
			fault.Merge(secret, `{"data":null}`).Expecting(trusted),
		},
	}, 100)
}

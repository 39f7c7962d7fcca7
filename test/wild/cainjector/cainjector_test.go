package cainjector

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

//go:embed testdata/old.pem
var before string

//go:embed testdata/new.pem
var after string

func TestCAInjector(t *testing.T) {
	none, fail := admissionv1.SideEffectClassNone, admissionv1.Fail
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "default", Annotations: map[string]string{certmanager.AllowsInjectionFromSecretAnnotation: "true"}},
		StringData: map[string]string{"ca.crt": before},
	}
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook", Annotations: map[string]string{certmanager.WantInjectFromSecretAnnotation: "default/ca"}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "check.example.com", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "webhook"}},
		}},
	}
	trusts := func(ca string) func(context.Context, *fault.World) error {
		return func(ctx context.Context, w *fault.World) error {
			h := &admissionv1.ValidatingWebhookConfiguration{}
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(hook), h); err != nil {
				return err
			}
			if !bytes.Contains(h.Webhooks[0].ClientConfig.CABundle, []byte(strings.TrimSpace(ca))) { // beside older ones
				return errors.New("the webhook does not trust the CA of the Secret")
			}
			return nil
		}
	}
	wild.Play(t, fault.Scenario{
		Name: "ca",
		Operator: fault.Operator{
			CRDs:        fault.Module(t, "github.com/cert-manager/cert-manager", "deploy/crds"),
			AddToScheme: certmanager.AddToScheme,
			Manager:     manager.Options{Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				return cainjector.RegisterAllInjectors(t.Context(), mgr, cainjector.SetupOptions{
					EnableCertificatesDataSource: true, EnabledReconcilersFor: map[string]bool{cainjector.ValidatingWebhookConfigurationName: true},
				})
			},
		},
		Shared: []string{"validatingwebhookconfigurations.admissionregistration.k8s.io"},
		Steps: []fault.Step{
			fault.Create(secret),
			fault.Create(hook).Expecting(trusts(before)),
			fault.Merge(secret, `{"data":{"ca.crt":"`+base64.StdEncoding.EncodeToString([]byte(after))+`"}}`).Expecting(trusts(after)),
			fault.Delete(hook).Gone(hook),
		},
	}, 85)
}

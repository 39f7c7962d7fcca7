package trustmanager

import (
	_ "embed"
	"errors"
	"testing"

	trust "github.com/cert-manager/trust-manager/pkg/apis/trust/v1alpha1"
	"github.com/cert-manager/trust-manager/pkg/bundle"
	"github.com/cert-manager/trust-manager/pkg/bundle/controller"
	"github.com/cert-manager/trust-manager/pkg/webhook"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/wild"
)

//go:embed testdata/root.pem
var certificate string

func TestTrustManager(t *testing.T) {
	opts := controller.Options{Namespace: "default"}
	label := map[string]string{"trust": "yes"}
	b := &trust.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "roots"}, Spec: trust.BundleSpec{
		Sources: []trust.BundleSource{{InLine: certificate}},
		Target: trust.BundleTarget{
			ConfigMap:         &trust.TargetTemplate{Key: "ca.crt"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: label}, // of several, the order is random
		},
	}}
	wrong := b.DeepCopy()
	wrong.Name, wrong.Spec.Sources = "wrong", []trust.BundleSource{{ConfigMap: &trust.SourceObjectKeySelector{Name: "a"}}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: label}}
	wild.Play(t, fault.Scenario{
		Name: "roots",
		Operator: fault.Operator{
			CRDs:        fault.Module(t, "github.com/cert-manager/trust-manager", "deploy/crds"),
			AddToScheme: trust.AddToScheme,
			Manager:     manager.Options{Cache: bundle.CacheOpts(opts)},
			SetUp: func(mgr ctrl.Manager, _ *fault.Env) error {
				return errors.Join(bundle.SetupWithManager(t.Context(), mgr, opts), webhook.SetupWebhookWithManager(mgr))
			},
		},
		Steps: []fault.Step{
			fault.Create(b).Becomes(b, "Synced"),
			fault.Create(ns),
			fault.Merge(b, `{"spec":{"target":{"configMap":{"key":"roots.pem"}}}}`).Becomes(b, "Synced"),
			fault.Delete(b).Gone(b),
			fault.Create(wrong).Refused("denied the request: spec.sources[0].configMap"),
		},
	}, 150,
		wild.Bug{
			Invariant: fault.I7, Says: "observedGeneration of condition Synced of bundles.trust.cert-manager.io roots became 2; the generation of the object that was created again is 1",
			Then: "roots went back from 2 to 1", Why: "a status without UID is written onto the Bundle's successor",
		},
	)
}

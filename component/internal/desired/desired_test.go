package desired_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// options are those of the operator op.test for the component shop/web.
func options() desired.Options {
	return desired.Options{
		Name: "op.test", OwnerID: "c1/shop/web", Generation: 7, Namespace: "shop",
		Policies: api.Policies{
			AdoptionPolicy: api.AdoptionPolicyIfUnowned, ReconcilePolicy: api.ReconcilePolicyOnObjectChange,
			UpdatePolicy: api.UpdatePolicyReplace, DeletePolicy: api.DeletePolicyDelete,
		},
		Scope: scope, Scheme: clientgoscheme.Scheme,
	}
}

// scope knows the kinds that an API server has from the start.
func scope(k schema.GroupKind, _ string) (namespaced, known bool) {
	switch k.Kind {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "APIService", "StorageClass",
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "PersistentVolume", "PriorityClass":
		return false, true
	}
	return true, !strings.Contains(k.Group, ".") || strings.HasSuffix(k.Group, ".k8s.io")
}

// objects reads YAML documents.
func objects(t *testing.T, text string) []client.Object {
	t.Helper()
	var out []client.Object
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		out = append(out, u)
	}
	return out
}

func TestTypedObject(t *testing.T) {
	got, err := desired.Normalize([]client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"},
	}}, options())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
		"metadata": map[string]any{
			"name": "a", "namespace": "shop",
			"labels": map[string]any{"op.test/owner-id": desired.OwnerLabel("c1/shop/web")},
			"annotations": map[string]any{
				"op.test/owner-id": "c1/shop/web /ConfigMap/shop/a",
				"op.test/digest":   got[0].Item.Digest,
			},
		},
	}
	if diff := cmp.Diff(want, got[0].Manifest.Object); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestEdges(t *testing.T) {
	got, err := desired.Normalize(objects(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {op.test/depends-on: "ConfigMap/c"}}
spec: {template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: web, containers: [{name: c, resources: {limits: {cpu: 0.5}}}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {a: b}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks: [{clientConfig: {service: {name: web, namespace: shop}}}]
`), options())
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string][]string{}
	for _, o := range got {
		needs[o.Item.Kind] = o.Item.DependsOn
	}
	want := map[string][]string{
		"Deployment":                     {"/ConfigMap/shop/c", "/ServiceAccount/shop/web"},
		"ConfigMap":                      nil,
		"ServiceAccount":                 nil,
		"Service":                        nil,
		"ValidatingWebhookConfiguration": {"/Service/shop/web", "apps/Deployment/shop/web"},
	}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

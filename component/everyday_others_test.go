package component_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// everydayOthers are about what others do.
func everydayOthers() map[string]everyday {
	elsewhere := edited(everydayConf, "metadata: {", "metadata: {namespace: $NS-x, ")
	return map[string]everyday{
		"webhook that adds a sidecar": {
			why:    "the containers are not only ours",
			before: sidecars,
			steps: []everyStep{
				{manifest: everydayWeb, then: sidecarIs("1")},
				{manifest: edited(everydayWeb, "web:1", "web:2"), then: sidecarIs("2")},
			},
		},
		"ConfigMap of two components": {
			why:   "two components render the same object",
			steps: []everyStep{{manifest: everydayConf, then: shared}},
		},
		"object that is there already": {
			why:    "kubectl applied it, with a field more",
			theirs: edited(everydayConf, "level: debug", "level: info, old: x"),
			steps:  []everyStep{{manifest: everydayConf, then: adopted}},
		},
		"finalizer of others": {
			why:     "a controller holds the object while it is deleted",
			steps:   []everyStep{{manifest: everydayConf, then: func(b *bench) { b.merge("them", b.named("conf"), `{"metadata":{"finalizers":["example.org/theirs"]}}`) }}},
			leaving: heldByOthers,
		},
		"namespace that is being deleted": {
			why: "somebody deletes the namespace of a dependent, and something holds it",
			theirs: "{apiVersion: v1, kind: Namespace, metadata: {name: $NS-x}}\n---\n" +
				"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: $NS-x, finalizers: [example.org/theirs]}}",
			before: func(b *bench) {
				b.drop(b.elsewhere())
				testenv.Wait(b.t, b.admin, b.elsewhere(), "terminating", func(n *corev1.Namespace) bool { return n.DeletionTimestamp != nil })
			},
			steps: []everyStep{
				{manifest: elsewhere, says: []string{"ConfigMap $NS-x/conf", "being terminated"}, then: func(b *bench) {
					held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace + "-x", Name: "held"}}
					if err := b.admin.Patch(b.t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
						b.t.Fatal(err)
					}
				}},
				{manifest: elsewhere},
			},
		},
	}
}

// elsewhere is another namespace than that of the component.
func (b *bench) elsewhere() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-x"}}
}

// shared has a second component render the ConfigMap of the first, and deletes it again.
func shared(b *bench) {
	before := b.live("conf").UID
	b.createAs("b", asObjects(b.manifests(edited(everydayConf, "debug", "info")))...)
	b.awaitAs("b", "refused", func(o *bundle.Bundle) bool {
		return containsAll(o.Status.Message, []string{"ConfigMap " + b.namespace + "/conf", "belongs to", b.namespace + "/a"})
	})
	second := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "b"}}
	b.drop(second)
	testenv.Gone(b.t, b.admin, second, "deleted")
	if live := b.live("conf"); live.UID != before || live.Data["level"] != "debug" {
		b.t.Errorf("the ConfigMap of the first component is %v, %v", live.UID, live.Data)
	}
}

// sidecars has a webhook add a container to the Deployments of the namespace.
func sidecars(b *bench) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inject(b.t, w, r) }))
	b.t.Cleanup(server.Close)
	url, fail, none := server.URL, admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "sidecars.example.org", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &url,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: b.namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}
	if err := b.admin.Create(b.t.Context(), hook); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.admin.Delete(context.WithoutCancel(b.t.Context()), hook) })
	probe := b.placed(b.manifests(edited(everydayWeb, "name: web}", "name: probe}"))[0])
	within(b.t, "the webhook", func() bool {
		tried := probe.DeepCopy()
		err := b.admin.Create(b.t.Context(), tried, client.DryRunAll)
		return err == nil && len(containersOf(tried)) == 2
	})
}

// inject answers a review: the Deployment gets a container, unless it has it.
func inject(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		t.Error(err)
		return
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(review.Request.Object.Raw, &u.Object); err != nil {
		t.Error(err)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if len(containersOf(u)) == 1 {
		kind := admissionv1.PatchTypeJSONPatch
		answer.PatchType = &kind
		answer.Patch = []byte(`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"sidecar","image":"example.org/sidecar:1"}}]`)
	}
	review.Request, review.Response = nil, answer
	if err := json.NewEncoder(w).Encode(review); err != nil {
		t.Error(err)
	}
}

func containersOf(u *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	return list
}

// sidecarIs fails the test unless the Deployment has a version of our image, and the sidecar.
func sidecarIs(version string) func(*bench) {
	return func(b *bench) {
		list := containersOf(b.now(b.deployed()))
		if len(list) != 2 {
			b.t.Fatalf("containers %v, want two", list)
		}
		if ours, _ := list[0].(map[string]any); ours["image"] != "example.org/web:"+version {
			b.t.Errorf("image %v, want version %s", ours["image"], version)
		}
	}
}

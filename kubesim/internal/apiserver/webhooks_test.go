package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviewers answer at their paths; those that are nil are not there.
type reviewers struct {
	t      *testing.T
	by     map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	called []string
}

func (v *reviewers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := v.by[r.URL.Path]
	v.called = append(v.called, r.URL.Path)
	if answer == nil {
		return nil, errors.New("connection refused")
	}
	var of admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&of); err != nil {
		v.t.Error(err)
	}
	of.Response = answer(of.Request)
	of.Response.UID = of.Request.UID
	return Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(of); err != nil {
			v.t.Error(err)
		}
	}), r)
}

// calls returns the paths that were called since it was asked last.
func (v *reviewers) calls() []string {
	all := v.called
	v.called = nil
	return all
}

func allow(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func deny(why string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: why}}
	}
}

func patch(with string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(with), PatchType: new(admissionv1.PatchTypeJSONPatch)}
	}
}

func validatingHook(path string, change func(*admissionregistrationv1.ValidatingWebhook)) admissionregistrationv1.ValidatingWebhook {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: path[1:] + ".example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: []byte("\n"), Service: &admissionregistrationv1.ServiceReference{Namespace: "system", Name: "webhook-service", Path: &path},
		},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
	}
	if change != nil {
		change(&w)
	}
	return w
}

// Webhooks are called for what matches, in a fixed order, and their answers and failures count as on a real server.
func TestAdmissionWebhooks(t *testing.T) {
	w := newGuardedCluster(t)
	v := &reviewers{t: t, by: map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/b-first": deny("the first says no"), "/a-second": deny("the second says no"), "/labelled": deny("it has a label"),
		"/conditional": deny("it is called special"), "/mutate": patch(`[{"op":"add","path":"/data","value":{"size":"1"}}]`),
	}}
	hooks := NewWebhooks(v)
	w.server.CallWebhooks(hooks)
	configurations := w.admin().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configure := func(name string, hooks ...admissionregistrationv1.ValidatingWebhook) {
		t.Helper()
		_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks,
		}, metav1.CreateOptions{})
		wantMessage(t, err, "")
	}
	remove := func(name string) {
		t.Helper()
		wantMessage(t, configurations.Delete(t.Context(), name, metav1.DeleteOptions{}), "")
		v.calls()
	}
	create := func(name, label string) (*corev1.ConfigMap, error) {
		return w.admin().CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"label": label}},
		}, metav1.CreateOptions{})
	}

	configure("two", validatingHook("/b-first", nil), validatingHook("/a-second", nil))
	_, err := create("a", "")
	wantMessage(t, err, `admission webhook "b-first.example.com" denied the request: the first says no`)
	if d := cmp.Diff([]string{"/b-first", "/a-second"}, v.calls()); d != "" {
		t.Errorf("both are called, in their order (-want +got):\n%s", d)
	}
	remove("two")

	configure("some", validatingHook("/labelled", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"label": "yes"}}
	}), validatingHook("/conditional", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "special", Expression: "object.metadata.name == 'special'"}}
	}), validatingHook("/elsewhere", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "elsewhere"}}
	}))
	_, err = create("a", "yes")
	wantMessage(t, err, `admission webhook "labelled.example.com" denied the request: it has a label`)
	_, err = create("special", "")
	wantMessage(t, err, `admission webhook "conditional.example.com" denied the request: it is called special`)
	_, err = create("a", "no")
	wantMessage(t, err, "")
	if d := cmp.Diff([]string{"/labelled", "/conditional"}, v.calls()); d != "" {
		t.Errorf("what does not match is not called (-want +got):\n%s", d)
	}
	remove("some")

	configure("down", validatingHook("/nobody", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.FailurePolicy = new(admissionregistrationv1.Ignore)
	}))
	_, err = create("ignored", "")
	wantMessage(t, err, "")
	remove("down")
	configure("down", validatingHook("/nobody", nil))
	_, err = create("failed", "")
	wantMessage(t, err, `Internal error occurred: failed calling webhook "nobody.example.com": failed to call webhook: Post "https://webhook-service.system.svc:443/nobody?timeout=10s": connection refused`)
	remove("down")

	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	hooks.Imply("/mutate", true, maps)
	hooks.Imply("/a-second", false, maps)
	v.by["/a-second"] = allow
	made, err := create("implied", "")
	wantMessage(t, err, "")
	if d := cmp.Diff(map[string]string{"size": "1"}, made.Data); d != "" {
		t.Errorf("filled in (-want +got):\n%s", d)
	}
	v.calls()
	configure("named", validatingHook("/a-second", func(w *admissionregistrationv1.ValidatingWebhook) {
		w.Rules[0].Resources = []string{"secrets"}
	}))
	if _, err := create("named", ""); err != nil || slices.Contains(v.calls(), "/a-second") {
		t.Errorf("%v; a configuration says that it is for something else", err)
	}
	w.server.CallWebhooks(nil)
	if made, err := create("none", ""); err != nil || made.Data != nil || len(v.calls()) > 0 {
		t.Errorf("%v, %v; nothing is called", made, err)
	}
}

package kubesim_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim"
)

const noHuge = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: sizes}
webhooks:
- name: sizes.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook-service, namespace: system, path: /sizes}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
`

// A cluster calls webhooks once a test has said who answers, and fails requests while nobody does.
func TestServeWebhooks(t *testing.T) {
	c := kubesim.New(t, kubesim.Options{Webhooks: fstest.MapFS{"sizes.yaml": &fstest.MapFile{Data: []byte(noHuge)}}})
	k := newClient(t, c.Config())
	create := func(name, want string) {
		t.Helper()
		err := k.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("create %s: %v; want %q", name, err, want)
		}
	}
	create("before", "")
	mux := http.NewServeMux()
	mux.HandleFunc("/sizes", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "huge"}
		// What a webhook asks of the cluster is answered while a request waits for it.
		if err := k.Create(r.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "seen-"}}); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	})
	c.ServeWebhooks(mux)
	create("huge", `admission webhook "sizes.example.com" denied the request`)
	create("small", "")
	c.ServeWebhooks(nil)
	create("nobody", "connect: connection refused")
	secrets := &corev1.SecretList{}
	must(t, k.List(t.Context(), secrets))
	if len(secrets.Items) != 2 {
		t.Errorf("the webhook was called %d times, want 2", len(secrets.Items))
	}
}

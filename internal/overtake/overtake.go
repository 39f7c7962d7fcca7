// Package overtake provokes a race that any API server has: a DELETE that removes an object although a
// finalizer was added to it while the DELETE was in progress. It is for tests with a real API server.
package overtake

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Deletion is the deletion of one object. The API server reads the object, finds no finalizer, calls
// the admission webhooks, and removes the object without reading it again. The webhook of this package
// answers after the finalizer, and possibly more, has been written. The first write waits until the
// webhook has been called. The race therefore always happens.
type Deletion struct {
	path    string // how the path of requests to the object ends
	name    string
	asked   chan struct{} // closed when the deletion is in progress
	written chan struct{} // closed when the finalizer is written
	ask     func()
	write   func()
	heard   chan struct{} // a deletion of any object
	writes  atomic.Int64  // writes left before the webhook answers
}

// Of returns the deletion of an object of the resource, which ends after the given number of writes of
// the operator.
func Of(resource, name string, writes int) *Deletion {
	d := &Deletion{
		path: "/" + resource + "/" + name, name: name,
		asked: make(chan struct{}), written: make(chan struct{}), heard: make(chan struct{}, 1),
	}
	d.ask = sync.OnceFunc(func() { close(d.asked) })
	d.writes.Store(int64(writes))
	d.write = sync.OnceFunc(func() { close(d.written) })
	return d
}

// Transport delays an operator's writes to the object until its deletion is in progress.
func (d *Deletion) Transport(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, d.path) {
			return next.RoundTrip(r)
		}
		select {
		case <-d.asked:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		defer func() {
			if d.writes.Add(-1) <= 0 {
				d.write()
			}
		}()
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ServeHTTP implements the webhook.
func (d *Deletion) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	select {
	case d.heard <- struct{}{}:
	default:
	}
	if review.Request.Name == d.name {
		d.ask()
		select {
		case <-d.written:
		case <-r.Context().Done():
		}
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// Install makes the API server call the webhook for deletions of canary's kind in canary's namespace,
// and returns when it does. canary is an object of that kind, which is not deleted. The test is skipped
// if the API server runs on another machine and cannot reach the webhook.
func (d *Deletion) Install(t *testing.T, cfg *rest.Config, admin client.Client, canary client.Object, resource string) {
	t.Helper()
	if u, err := url.Parse(cfg.Host); err != nil || !loopback(u.Hostname()) {
		t.Skip("the API server is on another machine and cannot ask a webhook here")
	}
	server := httptest.NewUnstartedServer(d)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	gvk, err := admin.GroupVersionKindFor(canary)
	if err != nil {
		t.Fatal(err)
	}
	hook := configuration(canary.GetNamespace(), server, gvk.Group, gvk.Version, resource)
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hooks, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hooks.Delete(context.WithoutCancel(t.Context()), hook); err != nil {
			t.Errorf("remove the webhook: %v", err)
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 { // until the API server uses the configuration
		if err := admin.Delete(t.Context(), canary, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		select {
		case <-d.heard:
			return
		case <-tick.C:
		}
	}
	t.Fatal("the API server does not ask the webhook")
}

func configuration(namespace string, server *httptest.Server, group, version, resource string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "overtake.trimtab.dev", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(30)),
			SideEffects:       new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:     new(admissionregistrationv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
			}},
		}},
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

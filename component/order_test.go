package component_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/testenv"
)

// aggregated is an API server of its own that serves one kind, Thing, and the objects that make it known.
type aggregated struct {
	group   string
	objects []client.Object
	// things is how many there are.
	things atomic.Int64
}

// aggregate starts an aggregated API server on the loopback interface. The API server finds it by a
// Service that is an external name.
func (b *bench) aggregate() *aggregated {
	b.t.Helper()
	a := &aggregated{group: b.namespace + ".things.example.org"}
	server := httptest.NewTLSServer(a)
	b.t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	a.objects = []client.Object{
		object("v1", "Service", "things", map[string]any{"spec": map[string]any{
			"type": "ExternalName", "externalName": "127.0.0.1", "ports": []any{map[string]any{"port": int64(port)}},
		}}),
		object("apiregistration.k8s.io/v1", "APIService", "v1."+a.group, map[string]any{"spec": map[string]any{
			"group": a.group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": b.namespace, "name": "things", "port": int64(port)},
		}}),
	}
	return a
}

// ServeHTTP implements http.Handler.
func (a *aggregated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := a.group + "/v1"
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/things") && r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case strings.HasSuffix(r.URL.Path, "/things"):
		var items []any
		for i := range a.things.Load() {
			items = append(items, map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("t%d", i), "namespace": "x"}})
		}
		answer = map[string]any{"apiVersion": version, "kind": "ThingList", "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
	case strings.HasSuffix(r.URL.Path, version):
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	t.Run("deletion is blocked by objects of an aggregated API", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		a := b.aggregate()
		b.create(append(a.objects, configMap("one", "1"))...)
		b.ready()
		a.things.Store(2)
		b.requests.Reset()
		b.delete()
		b.blocked(component.StateDeleting, "2 objects of kind Thing (x/t0, x/t1)")
		b.fence()
		b.untouched()
		b.live("one")
		a.things.Store(0)
		b.fenceOrGone()
		b.gone()
		b.absent(b.named("one"))
	})
}

// fenceOrGone wakes the component, which may be gone afterwards.
func (b *bench) fenceOrGone() {
	b.t.Helper()
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"once more"}}}`)
}

func TestOrder(t *testing.T) {
	t.Parallel()
	t.Run("canonical order", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		other := b.namespace + "-x"
		hook := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace, map[string]any{"webhooks": []any{}})
		web := object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}},
			},
		}})
		baz, inside := b.bazOf("ours"), configMap("inside", "1")
		inside.Namespace = other
		a := b.aggregate()
		all := append([]client.Object{baz, inside, web, configMap("one", "1"), role("r"), hook, plain(b.baz()), object("v1", "Namespace", other, nil)}, a.objects...)
		b.create(all...)
		b.ready()
		if refused := b.requests.Select(func(r testenv.Request) bool { return r.Code == http.StatusNotFound && r.Resource != "" }); len(refused) > 0 {
			t.Errorf("answered with 404: %v", refused)
		}
		written := func(verbs ...string) []string {
			var order []string
			for _, r := range b.requests.Select(func(r testenv.Request) bool { return slices.Contains(verbs, r.Verb) && r.Code < 300 }) {
				if r.Resource != "bundles" && r.Resource != "events" && !strings.HasPrefix(r.Resource, "validatingadmission") &&
					(len(order) == 0 || order[len(order)-1] != r.Resource) {
					order = append(order, r.Resource)
				}
			}
			return order
		}
		last := func(order []string, resource string) int {
			at := -1
			for i, r := range order {
				if r == resource {
					at = i
				}
			}
			return at
		}
		got := written("apply", "create")
		for _, pair := range [][2]string{
			{"namespaces", "validatingwebhookconfigurations"},
			{"validatingwebhookconfigurations", "roles"},
			{"validatingwebhookconfigurations", "customresourcedefinitions"},
			{"customresourcedefinitions", "configmaps"},
			{"roles", "configmaps"},
			{"roles", "services"},
			{"configmaps", "deployments"},
			{"deployments", "apiservices"},
			{"services", "apiservices"},
			{"apiservices", "bazs"},
		} {
			if first, then := slices.Index(got, pair[0]), last(got, pair[1]); first < 0 || then < first {
				t.Errorf("%s must be applied before %s: %v", pair[0], pair[1], got)
			}
		}
		b.requests.Reset()
		b.delete()
		b.gone()
		got = written("delete")
		for _, pair := range [][2]string{
			{"bazs", "customresourcedefinitions"},
			{"bazs", "deployments"},
			{"customresourcedefinitions", "deployments"},
			{"apiservices", "services"},
			{"deployments", "validatingwebhookconfigurations"},
			{"deployments", "configmaps"},
		} {
			if first, then := slices.Index(got, pair[0]), last(got, pair[1]); first < 0 || then < first {
				t.Errorf("%s must be deleted before %s: %v", pair[0], pair[1], got)
			}
		}
		if got[len(got)-1] != "namespaces" {
			t.Errorf("deleted in the order %v, want the namespace last", got)
		}
		testenv.Gone(t, b.admin, &unstructured.Unstructured{Object: object("v1", "Namespace", other, nil).Object}, "deleted")
	})
}

package target

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestAPIs: what is served is known by version and kind, and an API whose own server is down counts as served.
func TestAPIs(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	var requests atomic.Int64
	answers := map[string]string{
		"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`,
		"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"metrics.example.org",
			"versions":[{"groupVersion":"metrics.example.org/v1","version":"v1"}]}]}`,
		"/api/v1":                      `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["get"]}]}`,
		"/apis/metrics.example.org/v1": `{"kind":"APIResourceList","groupVersion":"metrics.example.org/v1","resources":[{"name":"loads","kind":"Load","verbs":["get"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		text, ok := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/metrics") && down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	apis := newAPIs(client)
	want := []string{"metrics.example.org/v1", "metrics.example.org/v1/Load", "v1", "v1/Pod"}
	check := func(when string, a *APIs, want ...string) {
		t.Helper()
		served, _, err := a.Get(t.Context(), 0)
		if err != nil || served.Version != "v1.37.1" || !slices.Equal(served.APIs, want) {
			t.Errorf("%s: %v, %v, want %v", when, served, err, want)
		}
	}
	check("at first", apis, want...)
	down.Store(true)
	check("while an API is down", apis, want...)
	check("while an API is down that was never seen", newAPIs(client), "metrics.example.org/v1", "v1", "v1/Pod")
	before := requests.Load()
	if _, _, err := apis.Get(t.Context(), time.Hour); err != nil || requests.Load() != before {
		t.Errorf("%v, %d requests for what is known, want none", err, requests.Load()-before)
	}
}

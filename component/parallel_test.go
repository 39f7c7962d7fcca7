package component_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

func TestManyAtATime(t *testing.T) {
	t.Parallel()
	t.Run("B-8 W6 500 objects, of which 3 are denied", manyAtATime)
	t.Run("how long 500 objects take", func(t *testing.T) {
		if !deep() {
			t.Skip("a figure of a quiet machine; set TRIMTAB_DEEP=1")
		}
		if took := install(t, 500, 20*time.Millisecond); took > 2*time.Second {
			t.Errorf("500 objects took %s, want 2s at most", took)
		}
	})
}

// install has a component create objects on an API server whose answers are late, and returns the time from the first
// request to the last answer.
func install(t *testing.T, objects int, latency time.Duration) time.Duration {
	t.Helper()
	b := prepareBench(t)
	var mu sync.Mutex
	var begin, end time.Time
	b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/configmaps/m-") {
				return next.RoundTrip(r)
			}
			mu.Lock()
			if begin.IsZero() {
				begin = time.Now()
			}
			mu.Unlock()
			<-time.After(latency)
			response, err := next.RoundTrip(r)
			mu.Lock()
			end = time.Now()
			mu.Unlock()
			return response, err
		})
	})
	b.start()
	var all []client.Object
	for i := range objects {
		all = append(all, configMap(fmt.Sprintf("m-%03d", i), "1"))
	}
	b.create(all...)
	b.ready()
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d objects in %s, with %s of latency", objects, end.Sub(begin), latency)
	return end.Sub(begin)
}

// manyAtATime: each request for a dependent waits until 10 are under way. So 500 take 50 rounds, however slow
// the machine is, and with 20 ms for each of them one second. No request waits for a limiter of the client.
func manyAtATime(t *testing.T) {
	t.Helper()
	const objects, width, latency = 500, 10, 20 * time.Millisecond
	cfg, _ := via(t, testenv.Start(t)) // so that the host is that of this test
	b := prepareBenchOn(t, cfg)
	b.deny("m-007", "m-250", "m-499")
	rounds := newRounds(width)
	b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/m-") {
				rounds.join(r)
			}
			return next.RoundTrip(r)
		})
	})
	b.start()
	var all []client.Object
	for i := range objects {
		all = append(all, configMap(fmt.Sprintf("m-%03d", i), "1"))
	}
	b.create(all...)
	title := "ConfigMap " + b.namespace + "/"
	o := b.failed("3 of 500 dependents failed", "cannot create "+title+"m-007", "cannot create "+title+"m-250", "cannot create "+title+"m-499", "not this one")
	if strings.Contains(o.Status.Message, "more") {
		t.Errorf("the message %q does not name all", o.Status.Message)
	}
	created := b.requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" && r.Code == http.StatusCreated })
	if len(created) != objects-3 {
		t.Errorf("%d objects were created, want %d", len(created), objects-3)
	}
	var exist corev1.ConfigMapList
	if err := b.admin.List(t.Context(), &exist, client.InNamespace(b.namespace), client.HasLabels{b.key("owner-id")}); err != nil || len(exist.Items) != objects-3 {
		t.Errorf("%d objects exist, want %d: %v", len(exist.Items), objects-3, err)
	}
	if n := limitedRequests(cfg.Host); n > 0 {
		t.Errorf("%d requests passed a limiter of the client, want none", n)
	}
	if took := time.Duration(rounds.first()) * latency; took > 2*time.Second {
		t.Errorf("%d rounds of %s take %s", rounds.first(), latency, took)
	}
}

// limited counts requests that pass a limiter of the client, by host, whether they wait there or not. It is a
// [metrics.LatencyMetric].
type limited struct {
	mu    sync.Mutex
	hosts map[string]int
}

// Observe implements [metrics.LatencyMetric].
func (l *limited) Observe(_ context.Context, _ string, u url.URL, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts[u.Scheme+"://"+u.Host]++
}

// limitedRequests is how many requests to a host passed a limiter so far.
func limitedRequests(host string) int {
	l := metrics.RateLimiterLatency.(*limited)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hosts[host]
}

// rounds have requests wait for each other: each round has as many as there are to be under way at a time.
type rounds struct {
	width int

	mu      sync.Mutex
	waiting int
	round   chan struct{}
	count   int
	seen    map[string]bool
}

func newRounds(width int) *rounds {
	return &rounds{width: width, round: make(chan struct{}), seen: map[string]bool{}}
}

// join waits until the round is complete. Requests that are repeated do not wait.
func (r *rounds) join(request *http.Request) {
	r.mu.Lock()
	if r.seen[request.URL.Path] {
		r.mu.Unlock()
		return
	}
	r.seen[request.URL.Path] = true
	round := r.round
	if r.waiting++; r.waiting == r.width {
		close(round)
		r.waiting, r.round = 0, make(chan struct{})
		r.count++
	}
	r.mu.Unlock()
	select {
	case <-round:
	case <-request.Context().Done():
	}
}

// first is how many rounds it took to try each object once.
func (r *rounds) first() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

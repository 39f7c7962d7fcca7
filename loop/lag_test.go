package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/trace"
)

// writer is an author whose object is written in each pass, and who notes the versions.
type writer struct {
	*author
	mu    sync.Mutex
	wrote map[string]string // the newest version that a pass wrote, by object
}

func (w *writer) sink() trace.Sink { return w }

// Record notes what was written.
func (w *writer) Record(r trace.Record) {
	w.mu.Lock()
	if e, is := r.Event.(trace.Write); is && e.Err == "" {
		w.wrote[r.Object.Name] = e.ResourceVersion
	}
	w.mu.Unlock()
	w.author.Record(r)
}

// TestReadsOwnWrites: an author never works on a copy that is older than what its last pass wrote.
func TestReadsOwnWrites(t *testing.T) {
	t.Parallel()
	t.Run("003-18 no call sees an older version than was written, in 100 runs with an informer 500 ms late", func(t *testing.T) {
		t.Parallel()
		const objects, lag = 100, 500 * time.Millisecond
		w := &writer{wrote: map[string]string{}}
		calls := map[string]int{}
		w.author = newAuthor(func(_ context.Context, r *run) loop.Outcome {
			w.mu.Lock()
			defer w.mu.Unlock()
			name := r.Obj.Name
			if calls[name]++; calls[name] > 1 {
				order, err := resourceversion.CompareResourceVersion(r.Obj.ResourceVersion, w.wrote[name])
				if err != nil || order < 0 || w.wrote[name] == "" {
					t.Errorf("a call for %s sees version %s, but %q was written (%v)", name, r.Obj.ResourceVersion, w.wrote[name], err)
				}
				return loop.Done()
			}
			r.Obj.Annotations = map[string]string{"example.org/call": fmt.Sprint(calls[name])}
			r.Obj.Status.Note = name
			return loop.Again() // in a fifth of the lag
		})
		k := newControllerTest(t, w, options{Name: "late", Workers: objects / 5}, (&looptest.Lag{Delay: lag}).Wrap)
		for n := range objects {
			k.create(fmt.Sprintf("p%d", n))
		}
		for range 2 * objects {
			k.next(w.author)
		}
		if measured(t, "trimtab_stale_skips_total", "controller", "late") == 0 {
			t.Error("no pass met a cache that was behind, so nothing was shown")
		}
	})
}

// TestStatusConflict: who loses a race for the status looks again.
func TestStatusConflict(t *testing.T) {
	t.Parallel()
	t.Run("003-14 a conflict of the status leads to a pass with a fresh copy", func(t *testing.T) {
		t.Parallel()
		var world atomic.Pointer[controllerTest]
		var theirs atomic.Value
		lost := func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/status") && theirs.Load() == nil {
					theirs.Store(world.Load().patch("a", `{"metadata":{"labels":{"theirs":"yes"}}}`).ResourceVersion) // wakes nobody
					return &http.Response{
						StatusCode: http.StatusConflict, Body: http.NoBody, Request: r, Header: http.Header{"Content-Type": []string{"application/json"}},
					}, nil
				}
				return next.RoundTrip(r)
			})
		}
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Status.Note = r.Obj.Labels["theirs"]
			return loop.Done()
		})
		w := newControllerTest(t, a, options{}, lost)
		world.Store(w)
		w.create("a")
		w.next(a)
		if second := w.next(a); second.Version != theirs.Load() || second.Attempt != 0 {
			t.Errorf("the next call saw version %s as attempt %d, want the one after the conflict, %s, as attempt 0", second.Version, second.Attempt, theirs.Load())
		}
		if got := w.get("a"); !ready(got) || got.Status.Note != "yes" {
			t.Errorf("status %+v does not follow from the fresh copy", got.Status)
		}
		w.quiet(a, time.Second)
	})
}

// TestStatusBody: what the loop sends of a status is its own.
func TestStatusBody(t *testing.T) {
	t.Parallel()
	t.Run("003-16 the request has the fields of the controller, and none that others wrote", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Status.Note = fmt.Sprint(r.Obj.Spec.Size)
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a)
		w.addCondition(metav1.Condition{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.Now()})
		w.requests.Reset()
		w.resize(2)
		w.next(a)
		sent := w.requests.Writes("probes", w.namespace, "a")
		if len(sent) != 1 || sent[0].Verb != "apply" || sent[0].Subresource != "status" {
			t.Fatalf("sent %v, want one apply of the status", sent)
		}
		var body map[string]any
		if err := json.Unmarshal(sent[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		status, _ := body["status"].(map[string]any)
		if diff := cmp.Diff([]string{"apiVersion", "kind", "metadata", "status"}, slices.Sorted(maps.Keys(body))); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"appliedGeneration", "conditions", "message", "note", "observedGeneration", "state"}, slices.Sorted(maps.Keys(status))); diff != "" {
			t.Errorf("fields of the status (-want +got):\n%s", diff)
		}
		if strings.Contains(string(sent[0].Body), "Theirs") || condition(w.get("a"), "Theirs") == nil {
			t.Errorf("the condition of another is in the body, or is gone: %s", sent[0].Body)
		}
	})
}

// measured returns the sum of a metric over all its series with these labels; a histogram counts its observations.
func measured(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			fits := f.GetName() == name
			for i := 0; i < len(labels); i += 2 {
				fits = fits && has[labels[i]] == labels[i+1]
			}
			if fits {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

package loop_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// contested is an author whose object another writes to: the status, before each write of the loop.
type contested struct {
	cleaner
	on     atomic.Bool
	writes atomic.Int64
	mu     sync.Mutex
	ends   []string
}

func (c *contested) sink() trace.Sink { return c }

// Record keeps how passes ended.
func (c *contested) Record(r trace.Record) {
	if e, is := r.Event.(trace.End); is {
		c.mu.Lock()
		c.ends = append(c.ends, strings.TrimSpace(e.Outcome+" "+e.Err))
		c.mu.Unlock()
	}
	c.author.Record(r)
}

// between is the other writer.
func (c *contested) between(t *testing.T, w func() *controllerTest) func(http.RoundTripper) http.RoundTripper {
	t.Helper()
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if c.on.Load() && r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/probes/a") {
				obj := &probe.Probe{}
				obj.Namespace, obj.Name = w().namespace, "a"
				body := fmt.Sprintf(`{"status":{"note":"theirs %d"}}`, c.writes.Add(1))
				if err := w().admin.Status().Patch(r.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
					t.Errorf("write the status: %v", err)
				}
			}
			return next.RoundTrip(r)
		})
	}
}

// TestContestedStatus: somebody writes the status all the time, so that no write of the loop finds the
// version that the pass has read. That neither keeps the loop from writing metadata, nor delays passes.
func TestContestedStatus(t *testing.T) {
	t.Parallel()
	const busy = 30
	passes := 0
	a := &contested{cleaner: cleaner{author: newAuthor(func(_ context.Context, r *run) loop.Outcome {
		passes++
		r.Obj.SetLabels(with(r.Obj.Labels, "pass", strconv.Itoa(passes)))
		r.Obj.Status.Note = ""
		if passes < busy {
			return loop.After(10 * time.Millisecond)
		}
		return loop.Done()
	})}}
	var w *controllerTest
	w = newControllerTest(t, a, options{}, a.between(t, func() *controllerTest { return w }))
	a.on.Store(true)
	w.create("a")
	for range busy {
		w.next(a.author)
	}
	a.on.Store(false)
	if got := w.get("a"); got.Labels["pass"] != strconv.Itoa(busy) || got.Status.ObservedGeneration != 1 || !ready(got) {
		t.Errorf("after %d passes: labels %v, status %+v", busy, got.Labels, got.Status)
	}
	a.mu.Lock()
	for i, outcome := range a.ends {
		if outcome != "After" && outcome != "Done" {
			t.Errorf("pass %d ended with %s", i+1, outcome)
		}
	}
	a.mu.Unlock()
	w.await("a", "a status without what the other wrote", func(p *probe.Probe) bool { return p.Status.Note == "" && ready(p) })
	w.delete()
	w.gone()
}

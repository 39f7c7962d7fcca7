package external_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// createMany makes n objects and returns their names.
func (w *operatorTest) createMany(n int) []string {
	w.t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("many-%02d", i)
		w.createAs(names[i])
	}
	return names
}

// decided waits until a decision was made on each object, the row of which begins so.
func (w *operatorTest) decided(names []string, row string) {
	w.t.Helper()
	for _, name := range names {
		if !w.until(func() bool {
			for _, r := range w.trace.rules(name) {
				if strings.HasPrefix(r, row) {
					return true
				}
			}
			return false
		}) {
			w.t.Fatalf("%s: decisions %v, none by row %s", name, w.trace.rules(name), row)
		}
	}
}

// readyInTime waits for objects whose calls have a short deadline. On a busy machine one can miss it although it does not hang:
// its object is asked for another pass, because its own retry is far.
func (w *operatorTest) readyInTime(names []string) {
	w.t.Helper()
	for _, name := range names {
		w.awaitAs(name, "Ready", func(o *thing.Thing) bool {
			if condition(o, "Failed").Reason == "Timeout" && o.Status.HandledReconcile == o.Annotations[api.AnnotationReconcile] {
				again := `{"metadata":{"annotations":{"` + api.AnnotationReconcile + `":"` + o.ResourceVersion + `"}}}`
				if err := w.admin.Patch(w.t.Context(), o.DeepCopy(), mergePatch([]byte(again))); err != nil {
					w.t.Fatal(err)
				}
			}
			return is(o, "Ready", "True")
		})
	}
}

func (w *operatorTest) allReady(names []string) {
	w.t.Helper()
	for _, name := range names {
		w.awaitAs(name, "Ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
	}
}

// TestThrottledForAll: what the API says to one object holds for all.
func TestThrottledForAll(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	const tooMany = http.StatusTooManyRequests
	throttle := func(string, string) *answer { return &answer{code: tooMany, after: "60"} }
	w.cloud.faulty(throttle)
	names := w.createMany(40)
	w.decided(names, "D-03")
	if calls := w.cloud.calls(true); len(calls) > 4 {
		t.Errorf("%d calls after \"Retry-After: 60\", want at most one for each of the 4 workers: %v", len(calls), calls)
	}
	got := w.awaitAs(names[20], "a status", func(o *thing.Thing) bool { return condition(o, "Ready").Reason == "Throttled" })
	if is(got, "Failed", "True") {
		t.Errorf("conditions %+v", got.Status.Conditions)
	}
}

// TestThrottledForAWhile: then they go on.
func TestThrottledForAWhile(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.cloud.faulty(func(string, string) *answer { return &answer{code: http.StatusTooManyRequests, after: "1"} })
	names := w.createMany(20)
	w.decided(names, "D-03")
	w.cloud.faulty(nil)
	w.allReady(names)
}

// TestBackAgain: objects that failed while the API was away, and would try again in an hour,
// come back with it.
func TestBackAgain(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"away": http.StatusServiceUnavailable, "throttled": http.StatusTooManyRequests} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, named{}, func(o *options) { o.Loop.Retry.Initial, o.Loop.Retry.Max = time.Hour, time.Hour })
			w.cloud.faulty(func(string, string) *answer { return &answer{code: code} })
			began := time.Now()
			names := w.createMany(30)
			for _, name := range names {
				w.decided([]string{name}, "D-")
			}
			calls, away := len(w.cloud.calls(true)), time.Since(began)
			if most := 10 + int(away/time.Second); calls > most { // once it counts as down, it is tried once a second at most
				t.Errorf("%d calls of an API that is away for %s, want %d at most", calls, away, most)
			}
			w.cloud.faulty(nil)
			w.allReady(names)
		})
	}
}

// deaf does not hear its context: observations of some things hang until they are let go.
type deaf struct {
	named
	mu    sync.Mutex
	out   map[string]int
	twice bool
	let   chan struct{}
}

func (d *deaf) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	d.mu.Lock()
	d.out[r.Object.Name]++
	d.twice = d.twice || d.out[r.Object.Name] > 1
	d.mu.Unlock()
	if strings.HasPrefix(r.Object.Name, "many-0") { // ten of them
		<-d.let
		ctx = context.WithoutCancel(ctx)
	}
	o, err := d.named.Observe(ctx, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out[r.Object.Name]--
	return o, err
}

// TestCallsThatDoNotReturn: they hold up their own objects and no others, no object is called
// twice at a time, and one whose call is back is observed without waiting for its retry.
func TestCallsThatDoNotReturn(t *testing.T) {
	t.Parallel()
	d := &deaf{out: map[string]int{}, let: make(chan struct{})}
	w := newOperatorTest(t, d, func(o *options) {
		o.CallDeadline = 500 * time.Millisecond
		o.Loop.Retry.Initial, o.Loop.Retry.Max = time.Hour, time.Hour
	})
	letGo := sync.OnceFunc(func() { close(d.let) })
	t.Cleanup(letGo)
	names := w.createMany(14)
	w.readyInTime(names[10:])
	hangs := func(o *thing.Thing) bool {
		c := condition(o, "Failed")
		return c.Reason == "CallHangs" && strings.Contains(c.Message, "Observe")
	}
	w.awaitAs(names[0], "to report which method does not return", hangs)
	w.change(names[0], annotated(api.AnnotationReconcile, "observe"))
	w.awaitAs(names[0], "a visit meanwhile", func(o *thing.Thing) bool { return o.Status.HandledReconcile == "observe" && hangs(o) })
	letGo()
	w.readyInTime(names)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.twice {
		t.Error("two calls for one object at a time")
	}
}

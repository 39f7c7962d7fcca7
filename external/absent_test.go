package external_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestDeletedByOthers: the thing is not there when its object goes.
func TestDeletedByOthers(t *testing.T) {
	t.Parallel()
	t.Run("E1-11 deletion of what is gone is success, whenever it went", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		lose := func() { w.cloud.with(func() { delete(w.cloud.items, "a") }) }
		cases := map[string]func(){
			"before the observation": lose,
			"between the observation and the delete, which is answered by 404": func() {
				w.cloud.with(func() {
					w.cloud.before = func(method, _ string) {
						if method == http.MethodDelete {
							lose()
						}
					}
				})
			},
		}
		for when, arrange := range cases {
			w.create()
			w.ready()
			h := w.follow("a")
			arrange()
			w.delete()
			for _, o := range h.untilGone() {
				if is(o, "Failed", "True") {
					t.Errorf("lost %s: conditions %+v", when, o.Status.Conditions)
				}
			}
			if w.cloud.get("a") != nil {
				t.Errorf("lost %s, and there again", when)
			}
			w.cloud.with(func() { w.cloud.before = nil })
		}
		if n := w.cloud.count(http.MethodDelete); n != 1 {
			t.Errorf("%d deletes, want the one that was answered by 404", n)
		}
	})
}

// TestFinalizer: as long as there may be a thing, its object stays.
func TestFinalizer(t *testing.T) {
	t.Parallel()
	// The row of the finalizer's order wants state Pending in the write that brings it. Status is
	// a subresource, which that write cannot reach; a write of its own is not worth a state
	// that is over with the pass.
	t.Run("E0-65 the finalizer comes before the create and goes after absence", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		var before []string
		w.cloud.with(func() {
			w.cloud.slow = map[string]bool{http.MethodDelete: true}
			w.cloud.before = func(method, _ string) {
				if method == http.MethodPost {
					before = w.get("a").Finalizers
				}
			}
		})
		w.create()
		if got := w.ready().Finalizers; len(got) != 1 || !slices.Equal(got, before) {
			t.Errorf("finalizers %v, and %v at the time of the create; want the same one", got, before)
		}
		w.delete()
		w.awaitCalls(http.MethodDelete, 1)
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+5)
		if got := w.get("a").Finalizers; !slices.Equal(got, before) {
			t.Errorf("finalizers %v while the thing is there, want %v", got, before)
		}
		w.cloud.settle("")
		w.gone()
	})
}

// TestSilence: an object that is gone costs nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	t.Run("E0-55 no call and no appointment for what is gone", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{}, func(o *options) { o.Loop.Name = "silence" })
		w.create()
		w.ready()
		over := reconciles(t, "silence", "success")
		w.delete()
		w.gone()
		calls := w.cloud.calls(true)
		// The pass that lets the object go, and the one that finds it gone.
		if !w.until(func() bool { return reconciles(t, "silence", "success") >= over+2 }) {
			t.Errorf("%v passes without an appointment, want 2", reconciles(t, "silence", "success")-over)
		}
		again := reconciles(t, "silence", "requeue_after")
		w.quiet(300 * time.Millisecond)
		if n := reconciles(t, "silence", "requeue_after"); n != again {
			t.Errorf("%v appointments for an object that is gone", n-again)
		}
		if now := w.cloud.calls(true); len(now) != len(calls) {
			t.Errorf("calls %v", now[len(calls):])
		}
	})
}

// reconciles is how many passes of a controller ended with a result.
func reconciles(t *testing.T, controller, result string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["controller"] == controller && labels["result"] == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

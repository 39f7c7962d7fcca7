package loop_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/loop"
)

// TestMetrics proves what is measured, of a controller that no other test has (Java Operator SDK, metrics).
func TestMetrics(t *testing.T) {
	t.Parallel()
	t.Run("002-63 passes, failures, retries, queue, duration, events and more, by controller and kind", func(t *testing.T) {
		t.Parallel()
		first := true
		var done atomic.Int64 // one for each of two generations, and more if the cache is late
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			defer func() { first = false }()
			switch {
			case first:
				return loop.Fail(errBroken)
			case r.Obj.Spec.Size == 1:
				return loop.After(200 * time.Millisecond)
			}
			done.Add(1)
			return loop.Done()
		})
		w := newControllerTest(t, cleaner{author: a}, options{Name: "measured", Retry: linear(0)})
		w.create("needle")
		w.next(a) // fails; retried
		w.next(a) // ready
		w.patch("needle", `{"spec":{"size":1}}`)
		w.next(a)                                // an event
		w.next(a)                                // an appointment, of those that follow
		w.patch("needle", `{"spec":{"size":2}}`) // and the end of them
		for w.next(a).Generation != 3 {
		}
		if err := w.admin.Delete(t.Context(), w.get("needle")); err != nil {
			t.Fatal(err)
		}
		ours := func(name string, labels ...string) float64 {
			return measured(t, name, append([]string{"controller", "measured", "kind", "Probe"}, labels...)...)
		}
		poll.Until(func() bool { return ours("trimtab_events_total", "cause", "deleted") > 0 })

		exact := map[string]float64{
			"trimtab_failures_total": 1, "trimtab_retries_total": 1,
			"trimtab_pass_causes_total cause retry":    1,
			"trimtab_passes_total outcome Fail":        1,
			"trimtab_passes_total outcome Removed":     1,
			"trimtab_events_total cause created":       1,
			"trimtab_events_total cause deleted":       1,
			"trimtab_events_total cause updated":       3, // two of the spec, and the deletion timestamp
			"trimtab_time_to_ready_seconds":            3, // one for each generation
			"trimtab_writes_total target metadata":     2, // the finalizer on and off
			"trimtab_budget_exceeded_total":            0,
			"trimtab_status_unwritable_total":          0,
			"trimtab_vanished_total":                   0,
			"trimtab_passes_total outcome Done":        float64(done.Load()),
			"trimtab_writes_total result Conflict":     0,
			"trimtab_writes_total result Unauthorized": 0,
		}
		got := map[string]float64{}
		for key := range exact {
			words := strings.Fields(key)
			got[key] = ours(words[0], words[1:]...)
		}
		if diff := cmp.Diff(exact, got); diff != "" {
			t.Errorf("measured (-want +got):\n%s", diff)
		}
		if n := done.Load(); n < 2 {
			t.Errorf("the author was done %d times, want once at least for each of two generations", n)
		}
		passes, appointments := ours("trimtab_passes_total"), ours("trimtab_pass_causes_total", "cause", "time")
		if appointments < 1 || ours("trimtab_pass_causes_total", "cause", "event")+appointments+1 != passes {
			t.Errorf("%v passes, of which %v at an appointment and one a retry; want all of them by their cause", passes, appointments)
		}
		if n := ours("trimtab_pass_duration_seconds"); n != passes {
			t.Errorf("the duration of %v passes of %v", n, passes)
		}
		if n := ours("trimtab_queue_duration_seconds"); n < 3 || n > 5 {
			t.Errorf("waited %v times for a pass, want once for each of three to five events", n)
		}
		if n := ours("trimtab_noop_passes_total"); n < 1 || n > appointments {
			t.Errorf("%v passes without a write, want one to %v", n, appointments)
		}
	})
	t.Run("002-63 no metric has an object's name or namespace", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(nil)
		w := newControllerTest(t, a, options{})
		w.create("haystack")
		w.next(a)
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "trimtab_") {
				continue
			}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if slices.Contains([]string{"haystack", w.namespace}, l.GetValue()) || slices.Contains([]string{"name", "namespace", "uid"}, l.GetName()) {
						t.Errorf("%s has the label %s=%q", f.GetName(), l.GetName(), l.GetValue())
					}
				}
			}
		}
	})
}

package loop

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/probe"
)

// sample is what a series says: the value of a counter, or the observations of a histogram and their sum.
type sample struct {
	value, sum float64
	n          uint64
}

// series returns the series of a metric with a label.
func series(t *testing.T, name, label, value string) []sample {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []sample
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == label && l.GetValue() == value {
					found = append(found, sample{m.GetCounter().GetValue(), m.GetHistogram().GetSampleSum(), m.GetHistogram().GetSampleCount()})
				}
			}
		}
	}
	return found
}

// TestDurations: what is measured is what passed, in simulated time.
func TestDurations(t *testing.T) {
	t.Parallel()
	t.Run("002-63 the sums of durations, and no time of a rate limit in the queue's", func(t *testing.T) {
		t.Parallel()
		registerMetrics()
		const name, took, per = "sums", 3 * time.Second, 100 * time.Second
		o := Options[*probe.Probe]{Name: name, RateLimit: RateLimit{Passes: 1, Per: per}}
		wind(t, o, func(*Run[*probe.Probe]) Outcome {
			<-time.After(took)
			return Done()
		}, nil, func(w *clockwork) {
			w.until(time.Second)
			w.patch() // waits 2s for the first pass, and 97s more for the limit
			w.until(200 * time.Second)
			w.patch() // may be reconciled at once
			w.until(300 * time.Second)
		})
		sum := func(metric string) (n uint64, seconds float64) {
			for _, m := range series(t, metric, "controller", name) {
				n, seconds = n+m.n, seconds+m.sum
			}
			return n, seconds
		}
		about := func(what string, wantN uint64, want float64) {
			t.Helper()
			if n, seconds := sum(what); n != wantN || seconds < want-0.5 || seconds > want+0.5 {
				t.Errorf("%s has %d observations of %.1fs together, want %d of %.1fs", what, n, seconds, wantN, want)
			}
		}
		about("trimtab_pass_duration_seconds", 3, 9)
		about("trimtab_queue_duration_seconds", 3, 0)
		about("trimtab_time_to_ready_seconds", 3, 3+(99+3)+3)
	})
	t.Run("a pass that follows one whose result was not written is a retry", func(t *testing.T) {
		t.Parallel()
		registerMetrics()
		const name = "unwritten"
		wind(t, Options[*probe.Probe]{Name: name}, func(r *Run[*probe.Probe]) Outcome {
			r.Obj.Status.Note = "x"
			return Done()
		}, nil, func(w *clockwork) {
			w.mu.Lock()
			w.refuse = errors.New("no space left")
			w.mu.Unlock()
			w.patch()
			synctest.Wait()
			w.until(2500 * time.Millisecond) // tried again after 1s and 2s
		})
		if got := series(t, "trimtab_retries_total", "controller", name); len(got) != 1 || got[0].value < 1 {
			t.Errorf("retries %v, want at least one", got)
		}
	})
}

// TestStart: the counters of alerts are there before the first failure.
func TestStart(t *testing.T) {
	t.Parallel()
	registerMetrics()
	c := New(scripted{}, Options[*probe.Probe]{})
	c.name, c.gvk = "started", probe.GroupVersion.WithKind("Probe")
	c.startMetrics()
	for name, want := range map[string]int{
		"trimtab_failures_total": 1, "trimtab_budget_exceeded_total": 1, "trimtab_stale_skips_total": 1,
		"trimtab_status_unwritable_total": 3, "trimtab_vanished_total": 3,
	} {
		if got := series(t, name, "controller", "started"); len(got) != want {
			t.Errorf("%s has %d series at the start, want %d", name, len(got), want)
		}
	}
}

// TestStanding: how an object is counted has no word of an author.
func TestStanding(t *testing.T) {
	t.Parallel()
	var stalled conditions.Set
	stalled.True(api.ConditionStalled, "Stuck", "stuck")
	warning := conditions.Event{Warning: true, Reason: "NoWater"}
	for name, tc := range map[string]struct {
		why  string
		r    conditions.Report
		want standing
	}{
		"own words": {"there is no end to them", conditions.Report{State: "Pumping tank-7", Reason: "NoTank7"}, standing{"Probe", "Other", "false", "Other"}},
		"ours":      {"there are few", conditions.Report{State: "Succeeded", Reason: "Full", Known: "Succeeded"}, standing{"Probe", "Succeeded", "false", "Succeeded"}},
		"cleanup":   {"one that fails is seen, too", conditions.Report{State: "Terminating", Reason: "NoWater", Known: "CleanupFailed", Event: warning}, standing{"Probe", "Terminating", "true", "CleanupFailed"}},
		"stalled":   {"whatever its state is called", conditions.Report{State: "Stuck", Known: "Stalled", Conditions: stalled.All()}, standing{"Probe", "Other", "true", "Stalled"}},
		"beside":    {"a wrong annotation fails nothing", conditions.Report{State: "Succeeded", Reason: "Available", Known: "Available", Event: warning}, standing{"Probe", "Succeeded", "false", "Available"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := countedAs("Probe", tc.r); got != tc.want {
				t.Errorf("%s: counted as %+v, want %+v", tc.why, got, tc.want)
			}
		})
	}
	one := standing{"Probe", "Failed", "true", "OneObject"}
	population.add(one, 1)
	population.add(one, -1)
	registerMetrics()
	if left := series(t, "trimtab_objects", "reason", "OneObject"); len(left) > 0 {
		t.Errorf("a series without objects stays: %v", left)
	}
}

package hours

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestDependencyThatIsMissing(t *testing.T) {
	t.Run("E1-09 a missing dependency is waited for as long as it takes, and is no failure", func(t *testing.T) {
		inHours(t, nil, func(w *simulation) {
			w.create("a", "b")
			for range 60 {
				w.pass(time.Minute)
				a := w.get("a")
				waits := condition(a, api.ConditionDependenciesReady)
				if a.Status.State != "Pending" || is(a, api.ConditionFailed) || is(a, api.ConditionReady) || !strings.Contains(waits.Message, "default/b") {
					t.Fatalf("state %s, conditions %+v", a.Status.State, a.Status.Conditions)
				}
			}
			for _, e := range w.events() {
				if e.Type == corev1.EventTypeWarning {
					t.Errorf("event %s: %s", e.Reason, e.Note)
				}
			}
			if n := w.errors(); n != 0 {
				t.Errorf("%v passes are counted as errors", n)
			}
			for _, s := range records[trace.Start](w) {
				if s.Attempt != 0 {
					t.Errorf("a pass is attempt %d", s.Attempt)
				}
			}
			if len(w.logged) > 0 {
				t.Errorf("logged %q", w.logged)
			}
			if len(w.vendor.calls) > 0 {
				t.Errorf("calls %v", w.vendor.calls)
			}
			w.create("b", "")
			w.pass(time.Second)
			if a := w.get("a"); !is(a, api.ConditionReady) {
				t.Errorf("a second after the dependency was ready: conditions %+v", a.Status.Conditions)
			}
		})
	})
}

func TestSlowCreates(t *testing.T) {
	t.Run("E1-15 a thousand creates of ten minutes, one worker", func(t *testing.T) {
		inHours(t, func(o *options) { o.Loop.Workers = 1 }, func(w *simulation) {
			const n = 1000
			w.vendor.takes = 10 * time.Minute
			began := time.Now()
			for i := range n {
				w.create(fmt.Sprintf("f%03d", i), "")
			}
			w.pass(time.Minute)
			if got := len(w.vendor.had("create", began)); got != n {
				t.Errorf("%d creates within a minute, want %d", got, n)
			}
			if f := w.get("f999"); !is(f, api.ConditionCreating) {
				t.Errorf("conditions %+v", f.Status.Conditions)
			}
			for _, e := range records[trace.End](w) {
				if e.Took >= time.Second {
					t.Fatalf("a visit occupied the worker for %s", e.Took)
				}
			}
		})
	})
}

func TestNewSpec(t *testing.T) {
	t.Run("E0-26 updating within a second of a new spec, with one update", func(t *testing.T) {
		inHours(t, nil, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			w.vendor.with(func() { w.vendor.takes = time.Minute })
			began := time.Now()
			w.setReadOnly("a")
			w.pass(time.Second)
			if a := w.get("a"); !is(a, api.ConditionUpdating) || a.Status.State != "Updating" {
				t.Errorf("state %s, conditions %+v", a.Status.State, a.Status.Conditions)
			}
			w.pass(10 * time.Minute)
			if a := w.get("a"); !is(a, api.ConditionReady) || is(a, api.ConditionUpdating) || a.Status.AppliedGeneration != a.Generation {
				t.Errorf("status %+v", a.Status)
			}
			if calls := w.vendor.had("update", began); len(calls) != 1 || !w.vendor.items["a"].readOnly {
				t.Errorf("updates %v", calls)
			}
		})
	})
}

func TestRoutineObservations(t *testing.T) {
	every := func(d time.Duration) func(*options) { return func(o *options) { o.DriftInterval = d } }
	t.Run("E0-34 observed at every interval with no event at all", func(t *testing.T) {
		inHours(t, nil, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			began := time.Now()
			w.pass(5 * time.Hour)
			looks := w.vendor.had("observe", began)
			if len(looks) < 27 || len(looks) > 34 { // 10 minutes, give or take a tenth
				t.Errorf("%d looks in five hours, want about 30", len(looks))
			}
			for i := 1; i < len(looks); i++ {
				if gap := looks[i].at.Sub(looks[i-1].at); gap < 9*time.Minute || gap > 11*time.Minute {
					t.Errorf("%s between two observations", gap)
				}
			}
		})
	})
	t.Run("E0-07 the API's own word is shown within an interval", func(t *testing.T) {
		inHours(t, nil, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			w.vendor.with(func() { w.vendor.items["a"].word = "IDLE" })
			w.pass(11 * time.Minute)
			if a := w.get("a"); a.Status.External.Status != "IDLE" {
				t.Errorf("status %+v", a.Status.External)
			}
		})
	})
	t.Run("E0-33 E1-22 without an interval there is no observation, with one an outage shows", func(t *testing.T) {
		inHours(t, every(-1), func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			passes, began := len(records[trace.Start](w)), time.Now()
			w.pass(10 * time.Minute)
			if looks := w.vendor.had("observe", began); len(looks) > 0 || len(records[trace.Start](w)) != passes {
				t.Errorf("observations %v", looks)
			}
		})
		inHours(t, every(time.Second), func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			w.vendor.with(func() { w.vendor.away = true })
			w.pass(2 * time.Second)
			if a := w.get("a"); !is(a, api.ConditionFailed) {
				t.Errorf("two seconds after the outage began: conditions %+v", a.Status.Conditions)
			}
		})
	})
}

func TestNothingIsReportedTwice(t *testing.T) {
	t.Run("E1-73 an event for every transition and none while nothing changes", func(t *testing.T) {
		inHours(t, func(o *options) { o.DriftInterval = time.Second }, func(w *simulation) {
			w.vendor.takes = 30 * time.Second
			before := 0
			// phase makes one transition, and then time passes in which there is none.
			phase := func(what string, transition func()) {
				t.Helper()
				transition()
				w.pass(2 * time.Second)
				if n := w.eventCount(); n != before+1 {
					t.Errorf("%s: %d events, want one more than %d; the last is %q", what, n, before, w.lastEvent())
				}
				before = w.eventCount()
				w.pass(20 * time.Second)
				if n := w.eventCount(); n != before {
					t.Errorf("%s: %d events about nothing, the last is %q", what, n-before, w.lastEvent())
				}
				before = w.eventCount()
			}
			phase("creating", func() { w.create("a", "") })
			phase("created", func() { w.pass(40 * time.Second) })
			phase("updating", func() { w.setReadOnly("a") })
			phase("updated", func() { w.pass(40 * time.Second) })
			w.vendor.with(func() { w.vendor.items["a"].word = "IDLE" })
			w.pass(20 * time.Second)
			if n := w.eventCount(); n != before || w.get("a").Status.External.Status != "IDLE" {
				t.Errorf("%d events about a status that is no transition: %q", n-before, w.lastEvent())
			}
			phase("failing", func() { w.vendor.with(func() { w.vendor.away = true }) })
			w.pass(10 * time.Minute)
			if n := w.eventCount(); n != before {
				t.Errorf("%d events about one failure: %q", n-before+1, w.lastEvent())
			}
			phase("recovered", func() {
				w.vendor.with(func() { w.vendor.away = false })
				w.pass(15 * time.Minute)
			})
		})
	})
}

// eventCount is how often something was reported about the folders. An event lives for an hour.
func (w *simulation) eventCount() int {
	w.t.Helper()
	n := 0
	for _, e := range w.events() {
		n++
		if e.Series != nil {
			n += int(e.Series.Count) - 1
		}
	}
	return n
}

func (w *simulation) lastEvent() string {
	w.t.Helper()
	events := w.events()
	slices.SortFunc(events, func(a, b eventsv1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	if len(events) == 0 {
		return ""
	}
	last := events[len(events)-1]
	return last.Type + " " + last.Reason + ": " + last.Note
}

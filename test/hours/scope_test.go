package hours

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
)

// createMany makes n folders and returns their names.
func (w *simulation) createMany(n int) []string {
	w.t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("f%02d", i)
		w.create(names[i], "")
	}
	return names
}

// well lists the folders that are Ready for their present spec and not Failed.
func (w *simulation) well(names []string) []string {
	w.t.Helper()
	var out []string
	for _, name := range names {
		f := w.get(name)
		if is(f, api.ConditionReady) && !is(f, api.ConditionFailed) && condition(f, api.ConditionReady).ObservedGeneration == f.Generation {
			out = append(out, name)
		}
	}
	return out
}

// busiest is the most calls within any d.
func busiest(calls []call, d time.Duration) int {
	most := 0
	for i, first := range calls {
		n := 0
		for _, c := range calls[i:] {
			if c.at.Sub(first.at) < d {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

var errSlowDown = errors.New("slow down")

// TestThrottledBackend: what the API says to one object holds for all.
func TestThrottledBackend(t *testing.T) {
	inHours(t, nil, func(w *simulation) {
		w.vendor.meet(func(string, string) error { return external.Throttled(errSlowDown, 30*time.Second) })
		began := time.Now()
		names := w.createMany(40)
		w.pass(29 * time.Second)
		if calls := w.vendor.all(began); len(calls) > 4 {
			w.t.Errorf("%d calls within 29 s of \"Retry-After: 30\", want at most one for each of the 4 workers", len(calls))
		}
		f := w.get(names[20])
		if ready := condition(f, api.ConditionReady); is(f, api.ConditionFailed) || ready.Reason != "Throttled" || !strings.Contains(ready.Message, "throttles requests") {
			w.t.Errorf("conditions %+v", f.Status.Conditions)
		}
		w.pass(31 * time.Second) // it is tried once, and refused again
		if calls := w.vendor.all(began); len(calls) > 5 {
			w.t.Errorf("%d calls within a minute of which each was throttled", len(calls))
		}
		w.vendor.meet(nil)
		open := time.Now()
		w.pass(35 * time.Second)
		if well := w.well(names); len(well) != len(names) {
			w.t.Errorf("%d of %d are ready 35 s after the API took calls again", len(well), len(names))
		}
		if n := busiest(w.vendor.all(open), 100*time.Millisecond); n > 12 { // three objects of three calls each, and one
			w.t.Errorf("%d calls within 100 ms once it was open again", n)
		}
	})
}

// TestThrottledDeletion: reads and deletes are held back too, and nothing is let go.
func TestThrottledDeletion(t *testing.T) {
	inHours(t, nil, func(w *simulation) {
		names := w.createMany(20)
		w.pass(time.Minute)
		w.vendor.meet(func(string, string) error { return external.Throttled(errSlowDown, 30*time.Second) })
		began := time.Now()
		for _, name := range names {
			must(w.t, w.client.Delete(w.t.Context(), w.get(name)))
		}
		w.pass(29 * time.Second)
		if calls := w.vendor.all(began); len(calls) > 4 {
			w.t.Errorf("%d calls", len(calls))
		}
		w.vendor.meet(nil)
		w.pass(20 * time.Second)
		if left := len(w.vendor.items); left != 0 {
			w.t.Errorf("%d things are left", left)
		}
	})
}

// TestOutage: an API that was away for 75 s is called little meanwhile, and what failed for it
// comes back with it.
func TestOutage(t *testing.T) {
	for name, fails := range map[string]error{"refused": errAway, "unauthorized": external.Denied(errors.New("wrong password"))} {
		t.Run(name, func(t *testing.T) {
			inHours(t, nil, func(w *simulation) {
				names := w.createMany(50)
				w.pass(time.Minute)
				if well := w.well(names); len(well) != len(names) {
					w.t.Fatalf("%d are ready before", len(well))
				}
				w.vendor.meet(func(string, string) error { return fails })
				began := time.Now()
				for _, name := range names {
					w.setReadOnly(name)
				}
				w.pass(75 * time.Second)
				calls := w.vendor.all(began)
				if name == "refused" && len(calls) > 40 {
					w.t.Errorf("%d calls of an API that was away for 75 s", len(calls))
				}
				for _, name := range names {
					f := w.get(name)
					if !is(f, api.ConditionFailed) || !is(f, api.ConditionReady) {
						w.t.Fatalf("%s: conditions %+v", name, f.Status.Conditions)
					}
				}
				w.vendor.meet(nil)
				back := time.Now()
				if name == "unauthorized" { // nobody tries for all; the first whose turn comes wakes the others
					w.pass(60 * time.Second)
				}
				w.pass(12 * time.Second)
				if well := w.well(names); len(well) != len(names) {
					w.t.Errorf("%d of %d are as asked for %s after the API came back", len(well), len(names), time.Since(back))
				}
				if n := busiest(w.vendor.all(back), 100*time.Millisecond); n > 12 {
					w.t.Errorf("%d calls within 100 ms", n)
				}
			})
		})
	}
}

// TestHints: what the API says about time is taken within limits.
func TestHints(t *testing.T) {
	tests := map[string]struct {
		why         string
		meets       error
		hint        time.Duration
		least, most int // calls in an hour
	}{
		"Retry-After of 1 ms":      {"it does not make us call without a pause", external.Throttled(errSlowDown, time.Millisecond), 0, 100, 3602},
		"Retry-After of a year":    {"it does not silence an object for a year", external.Throttled(errSlowDown, 8760*time.Hour), 0, 6, 8},
		"NotReady for 1 ms":        {"", external.NotReady(errSlowDown, time.Millisecond), 0, 100, 36_010},
		"NotReady for a year":      {"", external.NotReady(errSlowDown, 8760*time.Hour), 0, 6, 8},
		"look again after 1 ms":    {"", nil, time.Millisecond, 100, 36_010},
		"look again after a year":  {"", nil, 8760 * time.Hour, 6, 10},
		"look again after 3 hours": {"no later than a thing in sync is", nil, 3 * time.Hour, 6, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inHours(t, nil, func(w *simulation) {
				w.vendor.with(func() { w.vendor.takes, w.vendor.hint = 24*time.Hour, test.hint })
				if test.meets != nil {
					w.vendor.meet(func(string, string) error { return test.meets })
				}
				began := time.Now()
				w.create("a", "")
				w.pass(time.Hour)
				if n := len(w.vendor.all(began)); n < test.least || n > test.most {
					w.t.Errorf("%s: %d calls in an hour, want %d to %d", test.why, n, test.least, test.most)
				}
			})
		})
	}
}

// stubborn lets calls of some names hang whatever their context says, and counts them.
type stubborn struct {
	mu      sync.Mutex
	op      string
	names   map[string]bool
	out     map[string]int
	twice   bool
	release chan struct{}
}

func newStubborn(t *testing.T, op string, names ...string) *stubborn {
	t.Helper()
	s := &stubborn{op: op, names: map[string]bool{}, out: map[string]int{}, release: make(chan struct{})}
	for _, n := range names {
		s.names[n] = true
	}
	t.Cleanup(s.relent)
	return s
}

func (s *stubborn) meet(op, name string) error {
	s.mu.Lock()
	s.twice = s.twice || s.out[name] > 0
	hangs := op == s.op && s.names[name]
	if hangs {
		s.out[name]++
	}
	s.mu.Unlock()
	if !hangs {
		return nil
	}
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out[name]--
	return nil
}

// relent lets them all go on.
func (s *stubborn) relent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// TestACallThatDoesNotReturn: it holds up its own object and nothing else.
func TestACallThatDoesNotReturn(t *testing.T) {
	for _, op := range []string{"observe", "create"} {
		t.Run(op, func(t *testing.T) {
			inHours(t, nil, func(w *simulation) {
				stuck := []string{"f00", "f01", "f02", "f03", "f04", "f05"} // more than there are workers
				s := newStubborn(w.t, op, stuck...)
				w.vendor.meet(s.meet)
				names := w.createMany(16)
				w.pass(5 * time.Minute)
				if well := w.well(names); len(well) != len(names)-len(stuck) {
					w.t.Errorf("%d are ready beside %d whose calls hang: %v", len(well), len(stuck), well)
				}
				for _, name := range stuck {
					f := w.get(name)
					if failed := condition(f, api.ConditionFailed); failed.Reason != "CallHangs" || !strings.Contains(strings.ToLower(failed.Message), op) {
						w.t.Errorf("%s: %+v", name, failed)
					}
				}
				must(w.t, w.client.Delete(w.t.Context(), w.get("f00")))
				w.pass(time.Hour)
				if f := w.get("f00"); len(f.Finalizers) == 0 {
					w.t.Error("an object was let go while a call for it was out there")
				}
				s.relent()
				w.pass(30 * time.Second)
				if well := w.well(names[1:]); len(well) != len(names)-1 {
					w.t.Errorf("%d of %d are ready half a minute after the calls returned", len(well), len(names)-1)
				}
				if s.twice {
					w.t.Error("two calls for one object at a time")
				}
				if _, left := w.vendor.items["f00"]; left {
					w.t.Error("the thing of an object that is gone is left")
				}
			})
		})
	}
}

package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

// wantOf compares the calls of method so far.
func wantOf(t *testing.T, w *clockwork, method string, want ...visited) {
	t.Helper()
	for i := range want {
		want[i].Method = method
	}
	if diff := cmp.Diff(want, w.of(method)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestEndOfWrapped plays the deletion of an object and its absence, which an ordinary reconciler sees as well.
func TestEndOfWrapped(t *testing.T) {
	const s = time.Second
	policy := Options[*probe.Probe]{Retry: Retry{Initial: 2 * s, Attempts: 3, Jitter: -1}, MaxInterval: -1}
	conflict := func(*Run[*probe.Probe]) Outcome {
		return Fail(apierrors.NewConflict(schema.GroupResource{Resource: "probes"}, "a", errPump))
	}
	t.Run("both are retried by the policy, each anew", func(t *testing.T) {
		windWrapped(t, policy, failing, nil, func(w *clockwork) {
			w.until(s)
			w.doom()
			w.until(time.Minute)
			w.remove()
			w.until(24 * time.Hour)
			wantCalls(t, w, "before", at(0, 0, false))
			wantOf(t, w, "delete", at(s, 1, false), at(2*s, 1, false), at(6*s, 2, false), at(14*s, 3, true))
			wantOf(t, w, "gone", at(60*s, 0, false), at(62*s, 1, false), at(66*s, 2, false), at(74*s, 3, true))
			wantEnds(t, w, 9, "Fail")
			wantForgotten(t, w)
		})
	})
	t.Run("success is the end of it", func(t *testing.T) {
		before := testutil.ToFloat64(passes.WithLabelValues("probe", "Probe", "Done"))
		o := policy
		o.MaxInterval = 0
		windWrapped(t, o, inTurn(Done(), Fail(errPump), Done()), nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(24 * time.Hour)
			wantOf(t, w, "gone", at(s, 0, false), at(3*s, 1, false))
			wantForgotten(t, w)
		})
		if n := testutil.ToFloat64(passes.WithLabelValues("probe", "Probe", "Done")) - before; n != 2 {
			t.Errorf("%g passes are counted as done, want the first and the last", n)
		}
	})
	t.Run("what it asks for it gets", func(t *testing.T) {
		windWrapped(t, policy, inTurn(Done(), After(5*s), Done()), nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(24 * time.Hour)
			wantOf(t, w, "gone", at(s, 0, false), at(6*s, 0, false))
			wantForgotten(t, w)
		})
	})
	t.Run("an error for good is not retried", func(t *testing.T) {
		windWrapped(t, policy, inTurn(Done(), Fail(reconcile.TerminalError(errPump))), nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(24 * time.Hour)
			wantOf(t, w, "gone", at(s, 0, false))
			wantForgotten(t, w)
		})
	})
	t.Run("a conflict is repeated at once and is no failure", func(t *testing.T) {
		n := 0
		windWrapped(t, policy, func(r *Run[*probe.Probe]) Outcome {
			if n++; n == 2 || n == 3 {
				return conflict(r)
			}
			return Done()
		}, nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(time.Hour)
			got := w.of("gone")
			if len(got) != 3 || got[2].At > s+200*time.Millisecond || got[2].Attempt != 0 {
				t.Errorf("calls %+v, want three within 200 ms, none of them a retry", got)
			}
			for _, e := range w.ends {
				if e.Err != "" {
					t.Errorf("a pass ended with %q", e.Err)
				}
			}
			wantForgotten(t, w)
		})
	})
	t.Run("a panic, an error without text, and a call that hangs", func(t *testing.T) {
		n := 0
		o := policy
		o.Deadline = time.Minute
		windWrapped(t, o, func(*Run[*probe.Probe]) Outcome {
			switch n++; n {
			case 2:
				panic("pump")
			case 3:
				return Fail((*silent)(nil))
			case 4:
				<-time.After(10 * s)
			}
			return Done()
		}, nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(10 * s)
			if key, since := w.c.Longest(); key != (types.NamespacedName{Namespace: "n", Name: "a"}) || since.Sub(w.start).Truncate(s) != 7*s {
				t.Errorf("the longest pass is that of %s since %s, want n/a since 7s", key, since.Sub(w.start))
			}
			w.until(time.Hour)
			wantOf(t, w, "gone", at(s, 0, false), at(3*s, 1, false), at(7*s, 2, false))
			text := fmt.Sprint(w.ends)
			if !strings.Contains(text, "panicked in Reconcile: pump") || !strings.Contains(text, "Error method panicked") {
				t.Errorf("passes ended with %s", text)
			}
			wantForgotten(t, w)
		})
	})
	t.Run("one limit counts", func(t *testing.T) {
		o := policy
		o.RateLimit = RateLimit{Passes: 2, Per: time.Minute}
		windWrapped(t, o, failing, nil, func(w *clockwork) {
			w.until(s)
			w.remove()
			w.until(59 * s)
			wantOf(t, w, "gone", at(s, 0, false))
		})
	})
}

// TestRetriesOfWrapped plays with an ordinary reconciler what [TestTimelinesOfWrapped] does not.
func TestRetriesOfWrapped(t *testing.T) {
	const s = time.Second
	t.Run("002-05 events during a call lead to exactly one more, at once", func(t *testing.T) {
		windWrapped(t, Options[*probe.Probe]{}, func(*Run[*probe.Probe]) Outcome {
			<-time.After(s)
			return Done()
		}, nil, func(w *clockwork) {
			for range 3 {
				w.until(time.Since(w.start) + s/5)
				w.patch()
			}
			w.until(time.Hour)
			wantCalls(t, w, "one more", at(0, 0, false), at(s, 0, false))
		})
	})
	t.Run("002-08 the call for a pending event decides anew when the next one is due", func(t *testing.T) {
		next := inTurn(After(time.Hour), After(3*time.Hour), Done())
		windWrapped(t, Options[*probe.Probe]{MaxInterval: -1}, func(r *Run[*probe.Probe]) Outcome {
			<-time.After(s)
			return next(r)
		}, nil, func(w *clockwork) {
			w.until(s / 2)
			w.patch()
			w.until(24 * time.Hour)
			wantCalls(t, w, "none an hour after the first", at(0, 0, false), at(s, 0, false), at(3*time.Hour+2*s, 0, false))
		})
	})
	t.Run("002-06 002-07 RequeueAfter is kept, and nothing means no call in a day", func(t *testing.T) {
		windWrapped(t, Options[*probe.Probe]{MaxInterval: -1}, inTurn(After(2*s), Done()), nil, func(w *clockwork) {
			w.until(24 * time.Hour)
			wantCalls(t, w, "two", at(0, 0, false), at(2*s, 0, false))
			if diff := cmp.Diff([]string{"apply status"}, w.written()); diff != "" {
				t.Errorf("writes, that of the first success alone (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("002-39 initial delay, multiplier, longest delay and attempts, or a policy of one's own", func(t *testing.T) {
		generic := Options[*probe.Probe]{Retry: Retry{Initial: 2 * s, Multiplier: 3, Max: 10 * s, Attempts: 4, Jitter: -1}}
		windWrapped(t, generic, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "after 2 s, 6 s and twice 10 s",
				at(0, 0, false), at(2*s, 1, false), at(8*s, 2, false), at(18*s, 3, false), at(28*s, 4, true))
		})
		own := Options[*probe.Probe]{Retry: Retry{Next: func(retry int, _ error) (time.Duration, bool) { return time.Duration(5-retry) * s, retry < 4 }}}
		windWrapped(t, own, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "after 4 s, 3 s and 2 s", at(0, 0, false), at(4*s, 1, false), at(7*s, 2, false), at(9*s, 3, false))
		})
	})
	t.Run("002-42 002-44 without a retry there is one call, and one more for an event", func(t *testing.T) {
		windWrapped(t, every(s, -1), failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "one", at(0, 0, true))
			w.patch()
			w.until(2 * time.Hour)
			wantCalls(t, w, "two", at(0, 0, true), at(time.Hour, 0, true))
		})
	})
}

// silent is an error whose text cannot be had of a nil pointer.
type silent struct{ text string }

func (s *silent) Error() string { return s.text }

// wantEnds compares the ends of passes in the trace.
func wantEnds(t *testing.T, w *clockwork, n int, outcome string) {
	t.Helper()
	if len(w.ends) != n {
		t.Errorf("%d passes are traced, want %d", len(w.ends), n)
	}
	for _, e := range w.ends {
		if e.Outcome != outcome || e.Err != errPump.Error() {
			t.Errorf("a pass ended with %+v, want %s", e, outcome)
		}
	}
}

// wantForgotten: nothing is kept of an object that is gone.
func wantForgotten(t *testing.T, w *clockwork) {
	t.Helper()
	w.c.memory.mu.Lock()
	defer w.c.memory.mu.Unlock()
	if n := len(w.c.memory.objects); n != 0 {
		t.Errorf("%d objects are remembered", n)
	}
}

package loop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/trigger"
)

var errPump = errors.New("the pump is broken")

func failing(*Run[*probe.Probe]) Outcome { return Fail(errPump) }

// inTurn answers the outcomes one after the other, and the last one from then on.
func inTurn(outcomes ...Outcome) func(*Run[*probe.Probe]) Outcome {
	n := 0
	return func(*Run[*probe.Probe]) Outcome {
		o := outcomes[min(n, len(outcomes)-1)]
		n++
		return o
	}
}

// every is a linear policy without jitter.
func every(d time.Duration, attempts int) Options[*probe.Probe] {
	return Options[*probe.Probe]{Retry: Retry{Initial: d, Multiplier: 1, Attempts: attempts, Jitter: -1}}
}

// wantCalls compares the calls of Reconcile so far.
func wantCalls(t *testing.T, w *clockwork, why string, want ...visited) {
	t.Helper()
	for i := range want {
		want[i].Method = "reconcile"
	}
	if diff := cmp.Diff(want, w.of("reconcile")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

func at(d time.Duration, attempt int, last bool) visited {
	return visited{At: d, Attempt: attempt, Last: last}
}

// TestTimelines plays how events, retries and appointments interplay (Java Operator SDK), on the
// real queue: linear retry of 2 s, at most 3.
func TestTimelines(t *testing.T) { timelines(t, wind) }

// TestTimelinesOfWrapped plays the same with an ordinary reconciler.
func TestTimelinesOfWrapped(t *testing.T) { timelines(t, windWrapped) }

func timelines(t *testing.T, wind func(*testing.T, Options[*probe.Probe], func(*Run[*probe.Probe]) Outcome, func(*Run[*probe.Probe]) ErrorOutcome, func(*clockwork))) {
	t.Helper()
	const s = time.Second
	policy := every(2*s, 3)
	t.Run("002-46 success cancels what is pending", func(t *testing.T) {
		t.Run("T1 an appointment", func(t *testing.T) {
			wind(t, policy, inTurn(After(5*s), Done()), nil, func(w *clockwork) {
				w.until(s)
				w.patch()
				w.until(time.Hour)
				wantCalls(t, w, "none at 5 s", at(0, 0, false), at(s, 0, false))
			})
		})
		t.Run("T2 a retry", func(t *testing.T) {
			wind(t, policy, inTurn(Fail(errPump), Done(), Fail(errPump), Done()), nil, func(w *clockwork) {
				w.until(s)
				w.patch()
				w.until(5 * s)
				w.patch()
				w.until(time.Hour)
				wantCalls(t, w, "none at 2 s, and the next failure starts anew", at(0, 0, false), at(s, 1, false), at(5*s, 0, false), at(7*s, 1, false))
			})
		})
		t.Run("a new appointment may be made, and After is a success, too", func(t *testing.T) {
			wind(t, policy, inTurn(Fail(errPump), After(10*s), Fail(errPump), After(20*s), Done()), nil, func(w *clockwork) {
				w.until(time.Hour)
				wantCalls(t, w, "the failure at 12 s is the first again", at(0, 0, false), at(2*s, 1, false), at(12*s, 0, false), at(14*s, 1, false), at(34*s, 0, false))
			})
		})
	})
	t.Run("002-47 an event during a pending retry runs at once and is no attempt", func(t *testing.T) {
		t.Run("T3 during the failing pass", func(t *testing.T) {
			slow := func(*Run[*probe.Probe]) Outcome {
				<-time.After(300 * time.Millisecond)
				return Fail(errPump)
			}
			wind(t, policy, slow, nil, func(w *clockwork) {
				w.until(100 * time.Millisecond)
				w.patch()
				w.until(time.Hour)
				wantCalls(t, w, "the second right after the first, and three retries", at(0, 0, false), at(300*time.Millisecond, 0, false),
					at(2600*time.Millisecond, 1, false), at(4900*time.Millisecond, 2, false), at(7200*time.Millisecond, 3, true))
			})
		})
		t.Run("T4 while a retry is armed", func(t *testing.T) {
			wind(t, policy, failing, nil, func(w *clockwork) {
				for _, when := range []time.Duration{s / 2, s, 3 * s / 2} {
					w.until(when)
					w.patch()
				}
				w.until(time.Hour)
				wantCalls(t, w, "seven calls", at(0, 0, false), at(s/2, 1, false), at(s, 1, false), at(3*s/2, 1, false),
					at(2*s, 1, false), at(4*s, 2, false), at(6*s, 3, true))
			})
		})
	})
	t.Run("002-48 T5 exhausted and event: runs, still last, not reset", func(t *testing.T) {
		n := 0
		wind(t, policy, func(*Run[*probe.Probe]) Outcome {
			if n++; n == 6 {
				return Done()
			}
			return Fail(errPump)
		}, nil, func(w *clockwork) {
			for _, when := range []time.Duration{8 * s, 9 * s, 10 * s} {
				w.until(when)
				w.patch()
			}
			w.until(13 * s)
			wantCalls(t, w, "success at 9 s resets", at(0, 0, false), at(2*s, 1, false), at(4*s, 2, false), at(6*s, 3, true),
				at(8*s, 3, true), at(9*s, 3, true), at(10*s, 0, false), at(12*s, 1, false))
		})
	})
}

// TestTimer: what the author asks for comes without any event.
func TestTimer(t *testing.T) {
	const s = time.Second
	t.Run("002-58 a timer is behind appointments, work in progress and retries", func(t *testing.T) {
		wind(t, every(2*s, 3), inTurn(After(5*s), AgainAfter(3*s), Fail(errPump), FailAfter(errPump, 7*s), Done()), nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "each when it is due", at(0, 0, false), at(5*s, 0, false), at(8*s, 0, false), at(10*s, 1, false), at(17*s, 2, false))
		})
	})
}

// TestEventsDuringCalls: what comes while the author is at work.
func TestEventsDuringCalls(t *testing.T) {
	t.Run("002-05 events during a call lead to exactly one more, at once", func(t *testing.T) {
		var generations []int64
		wind(t, Options[*probe.Probe]{}, func(r *Run[*probe.Probe]) Outcome {
			generations = append(generations, r.Obj.Generation)
			<-time.After(time.Second)
			return Done()
		}, nil, func(w *clockwork) {
			for range 3 {
				w.until(time.Since(w.start) + 200*time.Millisecond)
				w.patch()
			}
			w.until(time.Hour)
			wantCalls(t, w, "one more", at(0, 0, false), at(time.Second, 0, false))
			if !slices.Equal(generations, []int64{1, 4}) {
				t.Errorf("generations %v, want the newest in the second call", generations)
			}
		})
	})
	t.Run("002-08 the call for a pending event decides anew when the next one is due", func(t *testing.T) {
		const s = time.Second
		next := inTurn(After(time.Hour), After(3*time.Hour), Done())
		wind(t, Options[*probe.Probe]{MaxInterval: -1}, func(r *Run[*probe.Probe]) Outcome {
			<-time.After(s)
			return next(r)
		}, nil, func(w *clockwork) {
			w.until(s / 2)
			w.patch()
			w.until(24 * time.Hour)
			wantCalls(t, w, "none an hour after the first", at(0, 0, false), at(s, 0, false), at(3*time.Hour+2*s, 0, false))
		})
	})
	t.Run("of several times to wake an object the first counts", func(t *testing.T) {
		wind(t, Options[*probe.Probe]{}, inTurn(Done()), nil, func(w *clockwork) {
			key := client.ObjectKeyFromObject(w.probe)
			var waker trigger.Waker
			watch := func(s source.Source) error { return s.Start(context.WithoutCancel(t.Context()), w.queue) }
			if err := (trigger.External[*probe.Probe]{Waker: &waker}).Attach(trigger.Target[*probe.Probe]{Watch: watch}); err != nil {
				t.Fatal(err)
			}
			for _, after := range []time.Duration{5 * time.Second, 2 * time.Second, time.Minute} {
				waker.Later(key, after)
			}
			w.until(time.Hour)
			wantCalls(t, w, "one more, at 2 s", at(0, 0, false), at(2*time.Second, 0, false))
		})
	})
	t.Run("an object that is gone is not visited again", func(t *testing.T) {
		wind(t, Options[*probe.Probe]{}, inTurn(Done()), nil, func(w *clockwork) {
			w.remove()
			synctest.Wait()
			w.until(24 * time.Hour)
			if w.passes != 2 {
				t.Errorf("%d passes in a day, want the first and the one that finds it gone", w.passes)
			}
		})
	})
}

// TestPolicies proves how delays are chosen.
func TestPolicies(t *testing.T) {
	const s = time.Second
	t.Run("002-39 initial delay, multiplier, longest delay and attempts, or a policy of one's own", func(t *testing.T) {
		generic := Options[*probe.Probe]{Retry: Retry{Initial: 2 * s, Multiplier: 3, Max: 10 * s, Attempts: 4, Jitter: -1}}
		wind(t, generic, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "after 2 s, 6 s and twice 10 s",
				at(0, 0, false), at(2*s, 1, false), at(8*s, 2, false), at(18*s, 3, false), at(28*s, 4, true))
		})
		type asked struct {
			Retry int
			Err   string
		}
		var calls []asked
		own := Options[*probe.Probe]{Retry: Retry{Next: func(retry int, err error) (time.Duration, bool) {
			calls = append(calls, asked{retry, err.Error()})
			return time.Duration(5-retry) * s, retry < 4
		}}}
		wind(t, own, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "after 4 s, 3 s and 2 s", at(0, 0, false), at(4*s, 1, false), at(7*s, 2, false), at(9*s, 3, false))
			text := errPump.Error()
			if diff := cmp.Diff([]asked{{1, text}, {2, text}, {3, text}, {4, text}}, calls); diff != "" {
				t.Errorf("what the policy was asked (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("no retry means none before the next event", func(t *testing.T) {
		permanent := errors.New("permanent")
		o := Options[*probe.Probe]{Retry: Retry{Next: func(_ int, err error) (time.Duration, bool) { return 10 * s, !errors.Is(err, permanent) }}}
		wind(t, o, inTurn(Fail(permanent), Fail(errPump), Fail(permanent), Fail(errPump), Done()), nil, func(w *clockwork) {
			for _, when := range []time.Duration{time.Minute, time.Minute + 5*s, 3 * time.Minute} {
				w.until(when)
				w.patch()
			}
			w.until(time.Hour)
			wantCalls(t, w, "an event lets it be tried again, and no retry that was armed before follows a refusal",
				at(0, 0, false), at(time.Minute, 0, false), at(time.Minute+5*s, 1, false), at(3*time.Minute, 1, false), at(3*time.Minute+10*s, 2, false))
		})
	})
	t.Run("a policy that says 0 means at once, and Attempts limits it", func(t *testing.T) {
		o := Options[*probe.Probe]{Retry: Retry{Attempts: 2, Next: func(int, error) (time.Duration, bool) { return 0, true }}}
		wind(t, o, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "three", at(0, 0, false), at(100*time.Millisecond, 1, false), at(200*time.Millisecond, 2, true))
		})
	})
	t.Run("a policy that panics is none", func(t *testing.T) {
		o := every(2*s, 1)
		o.Retry.Next = func(int, error) (time.Duration, bool) { panic("policy") }
		wind(t, o, failing, nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "as without it", at(0, 0, false), at(2*s, 1, true))
		})
	})
	t.Run("what the author says goes before the policy", func(t *testing.T) {
		o := Options[*probe.Probe]{Retry: Retry{Attempts: 1, Next: func(int, error) (time.Duration, bool) { return time.Minute, true }}}
		wind(t, o, inTurn(FailAfter(errPump, 3*s)), nil, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "after 3 s", at(0, 0, false), at(3*s, 1, true))
		})
	})
}

// TestLastPassIsStable: an appointment that is a little different each time is no reason to write.
func TestLastPassIsStable(t *testing.T) {
	const s = time.Second
	n := 0
	wind(t, Options[*probe.Probe]{Revision: "1"}, func(*Run[*probe.Probe]) Outcome {
		n++
		return After(10*s + time.Duration(n%3)*s/2)
	}, nil, func(w *clockwork) {
		w.until(10 * time.Minute)
		if writes := w.written(); len(writes) > 2 || n < 50 {
			t.Errorf("%d writes in %d passes", len(writes), n)
		}
	})
}

// TestErrorHandler proves what an author may decide about a failure.
func TestErrorHandler(t *testing.T) {
	const s = time.Second
	t.Run("002-44 002-49 without retries: one call, told to the handler as the last", func(t *testing.T) {
		wind(t, every(s, -1), failing, func(*Run[*probe.Probe]) ErrorOutcome { return RetryError() }, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "one", at(0, 0, true))
			if diff := cmp.Diff([]visited{{"onError", 0, 0, true}}, w.of("onError")); diff != "" {
				t.Errorf("calls of the handler (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("002-49 it sees every failure, the first with attempt 0", func(t *testing.T) {
		wind(t, every(s, 3), failing, func(*Run[*probe.Probe]) ErrorOutcome { return RetryError() }, func(w *clockwork) {
			w.until(time.Hour)
			want := []visited{{"onError", 0, 0, false}, {"onError", s, 1, false}, {"onError", 2 * s, 2, false}, {"onError", 3 * s, 3, true}}
			if diff := cmp.Diff(want, w.of("onError")); diff != "" {
				t.Errorf("calls of the handler (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("NoRetry waits for an event", func(t *testing.T) {
		wind(t, every(s, 0), failing, func(*Run[*probe.Probe]) ErrorOutcome { return NoRetry() }, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "one", at(0, 0, false))
			w.patch()
			w.until(2 * time.Hour)
			wantCalls(t, w, "one for the event", at(0, 0, false), at(time.Hour, 0, false))
		})
	})
	t.Run("RetryIn goes before the policy", func(t *testing.T) {
		wind(t, every(s, 2), failing, func(*Run[*probe.Probe]) ErrorOutcome { return RetryIn(7 * s) }, func(w *clockwork) {
			w.until(time.Hour)
			wantCalls(t, w, "7 s apart, as many as the policy allows", at(0, 0, false), at(7*s, 1, false), at(14*s, 2, true))
		})
	})
	t.Run("002-50 of what it changes only status arrives", func(t *testing.T) {
		wind(t, every(s, -1), failing, func(r *Run[*probe.Probe]) ErrorOutcome {
			r.Obj.Status.Note, r.Obj.Spec.Size = "seen", 99
			r.Obj.Labels, r.Obj.Finalizers = map[string]string{"no": "way"}, []string{"example.org/no"}
			return RetryError()
		}, func(w *clockwork) {
			w.until(s)
			if diff := cmp.Diff([]string{"apply status"}, w.written()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if got := w.probe; got.Status.Note != "seen" || got.Spec.Size != 0 || got.Labels != nil || got.Status.Message == "" || got.Status.State != "Failed" {
				t.Errorf("the object is %+v", got)
			}
		})
	})
	t.Run("002-51 WithoutStatus writes nothing, as long as it is returned", func(t *testing.T) {
		n := 0
		wind(t, every(s, 0), failing, func(r *Run[*probe.Probe]) ErrorOutcome {
			n++
			r.Obj.Status.Note = strings.Repeat("x", n)
			if n > 10 {
				return RetryError()
			}
			return RetryError().WithoutStatus()
		}, func(w *clockwork) {
			w.until(9*s + s/2)
			w.mu.Lock()
			status := w.probe.Status
			w.mu.Unlock()
			if diff := cmp.Diff(api.Status{}, status.Status); diff != "" || status.Note != "" || n != 10 || len(w.written()) > 0 {
				t.Errorf("after %d failures, %v is written, note %q; status (-want +got):\n%s", n, w.written(), status.Note, diff)
			}
			w.until(10 * s)
			if got := w.probe.Status; got.Note != strings.Repeat("x", 11) || got.State != "Failed" {
				t.Errorf("the status is %+v, want the failure and its note", got)
			}
		})
	})
	t.Run("002-54 neither its panic nor a failing write replaces the error", func(t *testing.T) {
		handlers := map[string]func(*Run[*probe.Probe]) ErrorOutcome{
			"a panic":         func(*Run[*probe.Probe]) ErrorOutcome { panic("handler") },
			"a failing write": func(*Run[*probe.Probe]) ErrorOutcome { return RetryError() },
		}
		for name, h := range handlers {
			t.Run(name, func(t *testing.T) {
				wind(t, every(s, 0), failing, h, func(w *clockwork) {
					if name == "a failing write" {
						w.refuse = apierrors.NewInternalError(errors.New("etcd is away"))
					}
					w.patch() // a new generation is to be written
					w.until(3 * s)
					wantCalls(t, w, "the schedule of the policy", at(0, 0, false), at(0, 1, false), at(s, 1, false), at(2*s, 2, false), at(3*s, 3, false))
					if len(w.ends) != 5 {
						t.Errorf("%d passes are traced, want 5", len(w.ends))
					}
					for _, e := range w.ends {
						if e.Err != errPump.Error() {
							t.Errorf("a pass ended with %q, want the author's error", e.Err)
						}
					}
					told := 0
					for _, l := range w.logged {
						if strings.Contains(l, `"Reconciler error"`) && strings.Contains(l, errPump.Error()) {
							told++
						}
					}
					if told != len(w.ends) {
						t.Errorf("%d of %d failures are in controller-runtime's log: %v", told, len(w.ends), w.logged)
					}
				})
			})
		}
	})
	t.Run("a pass that is not retried is repeated until its status is written, with its own error", func(t *testing.T) {
		wind(t, every(s, -1), failing, nil, func(w *clockwork) {
			w.until(s)
			w.refuse = apierrors.NewInternalError(errors.New("etcd is away"))
			w.patch()
			w.until(time.Minute)
			w.mu.Lock()
			w.refuse = nil
			w.mu.Unlock()
			w.until(time.Hour)
			if got := w.probe.Status; got.ObservedGeneration != 2 {
				t.Errorf("the status tells of generation %d, want 2", got.ObservedGeneration)
			}
			if calls := len(w.of("reconcile")); len(w.ends) != calls {
				t.Errorf("%d of %d passes are traced", len(w.ends), calls)
			}
			for _, e := range w.ends {
				if e.Err != errPump.Error() {
					t.Errorf("a pass ended with %q, want the author's error", e.Err)
				}
			}
			if n := len(w.of("reconcile")); n > 10 {
				t.Errorf("%d calls", n)
			}
		})
	})
}

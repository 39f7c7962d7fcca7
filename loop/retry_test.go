package loop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

var sorted = cmpopts.SortSlices(cmp.Less[string])

// attempt is what a failing pass was told.
type attempt struct {
	Attempt int
	Last    bool
}

// TestRetry proves the policy against a real queue and server.
func TestRetry(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, *run) loop.Outcome { return loop.Fail(errBroken) }
	t.Run("002-04 002-40 002-41 a limit on attempts, told to each", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(broken)
		w := newControllerTest(t, a, options{Retry: linear(3)})
		w.create("a")
		var got []attempt
		var calls []call
		for range 4 {
			c := w.next(a)
			got, calls = append(got, attempt{c.Attempt, c.Last}), append(calls, c)
		}
		want := []attempt{{0, false}, {1, false}, {2, false}, {3, true}}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		spaced(t, 300*time.Millisecond, calls...)
		p := w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		if m := condition(p, "Ready").Message; !strings.Contains(m, "gave up after 3 retries") {
			t.Errorf("message: %q", m)
		}
		w.quiet(a, time.Second)
		t.Run("002-42 an event runs once more, still last", func(t *testing.T) {
			w.resize(2)
			if c := w.next(a); c.Attempt != 3 || !c.Last {
				t.Errorf("attempt %d, last %t, want 3 and last", c.Attempt, c.Last)
			}
			w.quiet(a, time.Second)
		})
	})
	t.Run("002-43 success resets", func(t *testing.T) {
		t.Parallel()
		n := 0
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			if n++; n == 3 {
				return loop.Done()
			}
			return loop.Fail(errBroken)
		})
		w := newControllerTest(t, a, options{Retry: linear(0)})
		w.create("a")
		for range 3 {
			w.next(a)
		}
		w.await("a", "to be Ready", ready)
		w.resize(2)
		if c := w.next(a); c.Attempt != 0 {
			t.Errorf("after a success the attempt is %d, want 0", c.Attempt)
		}
	})
	t.Run("E0-56 failing again with the same text writes nothing, and the gaps grow", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(broken)
		w := newControllerTest(t, a, options{Retry: loop.Retry{Initial: 20 * time.Millisecond, Multiplier: 1.3, Jitter: -1}})
		w.create("a")
		var passes []call
		for range 10 {
			passes = append(passes, w.next(a))
		}
		if diff := gocmp.Diff([]string{"apply status"}, w.writes()); diff != "" {
			t.Errorf("writes of ten failures (-want +got):\n%s", diff)
		}
		// A busy machine comes late, never early.
		least := 20 * time.Millisecond
		for i, p := range passes[1:] {
			if gap := p.At.Sub(passes[i].Ended); gap < least {
				t.Errorf("retry %d came after %s, want at least %s", i+1, gap, least)
			}
			least = time.Duration(float64(least) * 1.3)
		}
	})
	t.Run("002-50 the error handler sees each failure and writes status alone", func(t *testing.T) {
		t.Parallel()
		h := handler{cleaner: cleaner{author: newAuthor(broken)}, onError: func(_ context.Context, r *run, err error) loop.ErrorOutcome {
			r.Obj.Status.Note = err.Error()
			r.Obj.Labels = map[string]string{"no": "way"}
			r.Obj.Spec.Size = 99
			return loop.RetryError()
		}}
		w := newControllerTest(t, h, options{Retry: linear(2)})
		w.create("a")
		var got []attempt
		for len(got) < 3 {
			if c := w.next(h.author); c.Method == "onError" {
				got = append(got, attempt{c.Attempt, c.Last})
			}
		}
		if diff := gocmp.Diff([]attempt{{0, false}, {1, false}, {2, true}}, got); diff != "" {
			t.Errorf("attempts told to the handler (-want +got):\n%s", diff)
		}
		p := w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		if p.Status.Note != errBroken.Error() || p.Labels != nil || p.Spec.Size != 0 {
			t.Errorf("note %q, labels %v, size %d; want the error, none and none", p.Status.Note, p.Labels, p.Spec.Size)
		}
	})
	t.Run("002-53 the error handler is not for cleanup", func(t *testing.T) {
		t.Parallel()
		fails := 3
		h := handler{cleaner: cleaner{author: newAuthor(nil), cleanup: func(context.Context, *run) loop.CleanupOutcome {
			if fails--; fails >= 0 {
				return loop.CleanupFailed(errBroken)
			}
			return loop.CleanedUp()
		}}, onError: func(context.Context, *run, error) loop.ErrorOutcome { return loop.RetryError() }}
		w := newControllerTest(t, h, options{Retry: linear(0)})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.delete()
		w.gone()
		if h.count("onError") != 0 || h.count("cleanup") != 4 {
			t.Errorf("handler calls %d, cleanups %d; want 0 and 4", h.count("onError"), h.count("cleanup"))
		}
	})
	t.Run("a panicking handler does not replace the error", func(t *testing.T) {
		t.Parallel()
		h := handler{cleaner: cleaner{author: newAuthor(broken)}, onError: func(context.Context, *run, error) loop.ErrorOutcome { panic("handler") }}
		w := newControllerTest(t, h, options{Retry: linear(1)})
		w.create("a")
		p := w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		if m := condition(p, "Ready").Message; !strings.HasPrefix(m, errBroken.Error()) {
			t.Errorf("message: %q", m)
		}
		if n := h.count("reconcile"); n != 2 {
			t.Errorf("%d calls, want the first and the one retry", n)
		}
	})
}

// noteTaker is an author that looks at failures and has nothing to clean up.
type noteTaker struct {
	*author
	onError func(ctx context.Context, r *run, err error) loop.ErrorOutcome
}

func (n noteTaker) OnError(ctx context.Context, r *run, err error) loop.ErrorOutcome {
	c := n.note("onError", r)
	defer n.done(c)
	return n.onError(ctx, r, err)
}

// gaugeWatcher is an author of a kind whose status is its own, and looks at failures.
type gaugeWatcher struct {
	*counter[*probe.Gauge]
	onError func(r *loop.Run[*probe.Gauge]) loop.ErrorOutcome
}

func (g gaugeWatcher) OnError(_ context.Context, r *loop.Run[*probe.Gauge], _ error) loop.ErrorOutcome {
	return g.onError(r)
}

// TestHandlerOfAnotherStatus: the loop has nothing to say in the status of a kind without the common one.
func TestHandlerOfAnotherStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		why    string
		answer loop.ErrorOutcome
		want   []string
	}{
		"002-51 WithoutStatus writes nothing at all": {"the handler dropped its note", loop.RetryError().WithoutStatus(), nil},
		"002-51 otherwise its note is written":       {"the handler kept its note", loop.RetryError(), []string{"patch status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gaugeWatcher{
				newCounter(func(*loop.Run[*probe.Gauge]) loop.Outcome { return loop.Fail(errBroken) }),
				func(r *loop.Run[*probe.Gauge]) loop.ErrorOutcome {
					r.Obj.Status.Note = errBroken.Error()
					return tt.answer
				},
			}
			w := newNamespaceTest(t)
			w.manage(loop.New(g, loop.Options[*probe.Gauge]{Retry: linear(2)}).SetupWithManager)
			createAs(t, w, gaugeNamed("a"))
			g.await(t, 3)
			g.silent(t, time.Second)
			var got []string
			for _, r := range w.requests.Writes("gauges", w.namespace, "a") {
				got = append(got, strings.TrimSpace(r.Verb+" "+r.Subresource))
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s; writes of three failures (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// TestFailingWrite: the API server does not take the status of a pass that failed.
func TestFailingWrite(t *testing.T) {
	t.Parallel()
	t.Run("002-54 the error that is logged is the author's, and its retries are as they would be", func(t *testing.T) {
		t.Parallel()
		l := &logged{}
		w := newNamespaceTest(t, func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(req *http.Request) (*http.Response, error) {
				if strings.HasSuffix(req.URL.Path, "/status") {
					return nil, errors.New("the line is cut")
				}
				return next.RoundTrip(req)
			})
		})
		w.log = l.logger()
		h := noteTaker{
			author:  newAuthor(func(context.Context, *run) loop.Outcome { return loop.Fail(errBroken) }),
			onError: func(context.Context, *run, error) loop.ErrorOutcome { return loop.RetryError() },
		}
		w.start(h, options{Retry: linear(0)})
		w.create("a")
		var got []int
		var calls []call
		for len(got) < 4 {
			if c := w.next(h.author); c.Method == "reconcile" {
				got, calls = append(got, c.Attempt), append(calls, c)
			}
		}
		if diff := gocmp.Diff([]int{0, 1, 2, 3}, got); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		spaced(t, 300*time.Millisecond, calls...)
		w.stop()
		lines := l.saying("Reconciler error")
		if len(lines) < 4 {
			t.Errorf("%d failures are in the log, want 4", len(lines))
		}
		for _, line := range lines {
			if text := fmt.Sprint(line["err"]); text != errBroken.Error() {
				t.Errorf("logged: %s, want the author's error", text)
			}
		}
	})
}

// TestErrorStatusWakes proves when the status that an error handler writes is news.
func TestErrorStatusWakes(t *testing.T) {
	t.Parallel()
	t.Run("002-52 only if every change is", func(t *testing.T) {
		t.Parallel()
		for mode, want := range map[loop.GenerationMode]int{loop.GenerationAware: 1, loop.EveryChange: 2} {
			t.Run(fmt.Sprint(want), func(t *testing.T) {
				t.Parallel()
				h := noteTaker{
					author: newAuthor(func(context.Context, *run) loop.Outcome { return loop.Fail(errBroken) }),
					onError: func(_ context.Context, r *run, err error) loop.ErrorOutcome {
						r.Obj.Status.Note = err.Error()
						return loop.NoRetry()
					},
				}
				w := newControllerTest(t, h, options{Generation: mode})
				w.create("a")
				w.await("a", "the handler's note", func(p *probe.Probe) bool { return p.Status.Note == errBroken.Error() })
				for h.count("onError") < want {
					w.next(h.author)
				}
				w.quiet(h.author, time.Second)
				if n := h.count("onError"); n != want {
					t.Errorf("the handler was called %d times, want %d", n, want)
				}
			})
		}
	})
}

// TestReferences proves that a named object wakes those who name it.
func TestReferences(t *testing.T) {
	t.Parallel()
	t.Run("003-06 missing is waiting, created is a call, renamed is none", func(t *testing.T) {
		t.Parallel()
		needs := trigger.Reference[*probe.Probe]{To: &probe.Plain{}, Names: func(p *probe.Probe) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
		}}
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			key := types.NamespacedName{Namespace: r.Obj.Namespace, Name: r.Obj.Spec.Needs}
			if err := r.Client().Get(ctx, key, &probe.Plain{}); err != nil {
				return loop.WaitFor("WaitingForDependency", loop.Dep{Kind: "Plain", Name: key.Name, Why: "does not exist"})
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{Sources: []trigger.Source[*probe.Probe]{needs}, Retry: linear(1)})
		w.create("b", func(p *probe.Probe) { p.Spec.Needs = "one" })
		w.next(a)
		p := w.await("b", "to wait", func(p *probe.Probe) bool { return p.Status.State == "Pending" })
		if m := condition(p, "Ready").Message; m != "waiting for Plain one: it does not exist" {
			t.Errorf("message: %q", m)
		}
		if e := w.awaitEvent("b", "WaitingForDependency"); e.Type != corev1.EventTypeNormal || condition(p, "Stalled") != nil {
			t.Errorf("waiting is an event of type %s, and the conditions are %v; want Normal, and no Stalled", e.Type, p.Status.Conditions)
		}
		name := "one"
		prompt(t, "the call for an object that was missing", time.Second, func() time.Duration {
			created := time.Now()
			createAs(t, w, plainNamed(name)) // which nobody writes: its creation is all that happens
			c := w.next(a)
			if c.Attempt != 0 || c.Last {
				t.Errorf("the call came as attempt %d, last %t; want it as if nothing had failed", c.Attempt, c.Last)
			}
			took := c.At.Sub(created)
			if took > time.Second { // another one is missing
				name += "-more"
				w.patch("b", fmt.Sprintf(`{"spec":{"needs":%q}}`, name))
				w.next(a)
			}
			return took
		})
		w.await("b", "to be Ready", ready)
		w.patch("b", `{"spec":{"needs":"two"}}`)
		w.next(a)
		w.await("b", "to wait again", func(p *probe.Probe) bool { return p.Status.State == "Pending" })
		quiet := w.listen(a)
		patchAs(t, w, plainNamed(name), false, `{"spec":{"size":3}}`)
		quiet(time.Second)
	})
}

// drain forgets calls noted so far.
func (w *controllerTest) drain(a *author) {
	w.t.Helper()
	if !poll.Until(func() bool { return a.over.Load() == a.begun.Load() }) {
		w.t.Fatal("a pass does not end")
	}
	w.quiet(a, 500*time.Millisecond)
	for {
		select {
		case <-a.ended:
		default:
			return
		}
	}
}

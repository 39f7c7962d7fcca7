package loop_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// breaker is an author one of whose methods breaks for the Probe a until it is mended.
type breaker struct {
	handler
	method string
	how    func()
	mended atomic.Bool
	broke  chan time.Time
}

func newBreaker(method string, how func()) *breaker {
	b := &breaker{method: method, how: how, broke: make(chan time.Time, 1000)}
	b.author = newAuthor(func(_ context.Context, r *run) loop.Outcome {
		b.at("Reconcile", r.Obj)
		if b.method == "OnError" && r.Obj.Name == "a" && !b.mended.Load() {
			return loop.Fail(errBroken)
		}
		return loop.Done()
	})
	b.cleanup = func(_ context.Context, r *run) loop.CleanupOutcome {
		b.at("Cleanup", r.Obj)
		return loop.CleanedUp()
	}
	b.onError = func(_ context.Context, r *run, _ error) loop.ErrorOutcome {
		b.at("OnError", r.Obj)
		return loop.RetryError()
	}
	return b
}

// at breaks if method is the one to break, for a.
func (b *breaker) at(method string, obj client.Object) {
	if method == b.method && obj.GetName() == "a" && !b.mended.Load() {
		b.broke <- time.Now()
		b.how()
	}
}

func (b *breaker) Prepare(_ context.Context, r *run) error {
	b.at("Prepare", r.Obj)
	return nil
}

func (b *breaker) Selects(_ context.Context, r *run) bool {
	b.at("Selects", r.Obj)
	return true
}

func (b *breaker) IndexKeys(p *probe.Probe) []string {
	b.at("IndexKeys", p)
	return nil
}

var (
	_ loop.Preparer[*probe.Probe] = (*breaker)(nil)
	_ loop.Selector[*probe.Probe] = (*breaker)(nil)
	_ loop.Indexer[*probe.Probe]  = (*breaker)(nil)
)

// source refers to the Probe that an object needs, by functions that may break.
func (b *breaker) source() trigger.Source[*probe.Probe] {
	return &trigger.Reference[*probe.Probe]{
		To: &probe.Probe{},
		Names: func(p *probe.Probe) []types.NamespacedName {
			b.at("Names", p)
			if p.Spec.Needs == "" {
				return nil
			}
			return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
		},
		Changed: func(_, after client.Object) bool {
			b.at("Changed", after)
			return false
		},
	}
}

// TestGuard: whatever the author's code does, the process and its workers go on, and what can
// be told in status is.
func TestGuard(t *testing.T) {
	t.Parallel()
	ways := map[string]func(){"panics": func() { panic("boom") }, "exits": runtime.Goexit}
	reasons := map[string]string{"Reconcile": "Panicked", "Cleanup": "Panicked", "Prepare": "PrepareFailed", "OnError": "ReconcileFailed"}
	for _, method := range []string{"Reconcile", "Cleanup", "OnError", "Prepare", "Selects", "IndexKeys", "Names", "Changed"} {
		for way, how := range ways {
			t.Run(method+" "+way, func(t *testing.T) {
				t.Parallel()
				b := newBreaker(method, how)
				w := newControllerTest(t, b, options{Workers: 1, Retry: linear(0), Sources: []trigger.Source[*probe.Probe]{b.source()}})
				w.create("a")
				switch method {
				case "Cleanup":
					w.await("a", "to be Ready", ready)
					w.delete()
				case "Changed":
					w.await("a", "to be Ready", ready)
					w.resize(2)
				}
				awaitBreak(t, b)
				if want := reasons[method]; want != "" {
					w.await("a", "to tell", func(p *probe.Probe) bool {
						c := condition(p, "Ready")
						return c != nil && c.Reason == want
					})
				}
				w.create("b")
				w.await("b", "to be Ready", ready)
				b.mended.Store(true)
				if method == "Cleanup" {
					w.gone()
					return
				}
				w.await("a", "to be Ready once it is mended", ready)
			})
		}
	}
	t.Run("a panic of Prepare is retried by the policy", func(t *testing.T) {
		t.Parallel()
		b := newBreaker("Prepare", func() { panic("boom") })
		w := newControllerTest(t, b, options{Retry: linear(0)})
		w.create("a")
		before := awaitBreak(t, b)
		for range 4 {
			at := awaitBreak(t, b)
			if gap := at.Sub(before); gap < 250*time.Millisecond {
				t.Errorf("tried again after %s, want 300 ms", gap)
			}
			before = at
		}
		p := w.await("a", "to tell", func(p *probe.Probe) bool { return condition(p, "Ready") != nil })
		if m := condition(p, "Ready").Message; !strings.Contains(m, "the controller panicked in Prepare: boom") || p.Status.State != "Failed" {
			t.Errorf("%s: %s", p.Status.State, m)
		}
	})
	t.Run("what cannot be told to matter does", func(t *testing.T) {
		t.Parallel()
		b := newBreaker("Changed", func() { panic("boom") })
		w := newControllerTest(t, b, options{Sources: []trigger.Source[*probe.Probe]{b.source()}})
		w.create("a")
		w.create("b", func(p *probe.Probe) { p.Spec.Needs = "a" })
		w.await("a", "to be Ready", ready)
		w.await("b", "to be Ready", ready)
		for len(b.ended) > 0 {
			<-b.ended
		}
		w.resize(2)
		for w.next(b.author).Name != "b" {
		}
	})
	t.Run("an error that cannot tell its text is an error", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			var err *nilError
			return loop.Fail(err)
		})
		w := newControllerTest(t, a, options{Retry: linear(0)})
		w.create("a")
		p := w.await("a", "to have failed", func(p *probe.Probe) bool { return p.Status.State == "Failed" })
		if m := condition(p, "Ready").Message; !strings.Contains(m, "*loop_test.nilError whose Error method panicked") {
			t.Errorf("message: %q", m)
		}
		w.next(a)
		w.next(a)
	})
}

// nilError is an error that needs a value.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func awaitBreak(t *testing.T, b *breaker) time.Time {
	t.Helper()
	select {
	case at := <-b.broke:
		return at
	case <-time.After(poll.Patience):
		t.Fatalf("%s was not called", b.method)
		return time.Time{}
	}
}

// TestReferenceByPointer: &trigger.Reference{} is watched like its value, and an incomplete one
// is refused.
func TestReferenceByPointer(t *testing.T) {
	t.Parallel()
	names := func(*probe.Probe) []types.NamespacedName { return nil }
	value := trigger.Reference[*probe.Probe]{To: &probe.Probe{}, Names: names}
	needs := func(s trigger.Source[*probe.Probe]) int {
		list, err := loop.New(newAuthor(nil), options{Sources: []trigger.Source[*probe.Probe]{s}}).Needs(scheme(t))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if a, b := needs(value), needs(&value); a != b {
		t.Errorf("%d permissions for the value, %d for the pointer", a, b)
	}
	for _, incomplete := range []trigger.Source[*probe.Probe]{
		trigger.Reference[*probe.Probe]{Names: names},
		&trigger.Reference[*probe.Probe]{To: &probe.Probe{}},
		(*trigger.Reference[*probe.Probe])(nil),
		(*trigger.External[*probe.Probe])(nil),
		nil,
	} {
		if _, err := loop.New(newAuthor(nil), options{Sources: []trigger.Source[*probe.Probe]{incomplete}}).Needs(scheme(t)); err == nil {
			t.Errorf("%#v is taken", incomplete)
		}
	}
}

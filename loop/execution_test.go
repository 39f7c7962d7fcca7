package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/testenv"
)

type (
	run     = loop.Run[*probe.Probe]
	options = loop.Options[*probe.Probe]
)

var errBroken = errors.New("the pump is broken")

// linear retries every 300 ms without jitter.
func linear(attempts int) loop.Retry {
	return loop.Retry{Initial: 300 * time.Millisecond, Multiplier: 1, Attempts: attempts, Jitter: -1}
}

// TestExecution proves when the author is called (Java Operator SDK, execution).
func TestExecution(t *testing.T) {
	t.Parallel()
	t.Run("002-01 every call is caused by an event", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(nil)
		w := newControllerTest(t, a, options{})
		name := ""
		prompt(t, "the call for an object that is created", 2*time.Second, func() time.Duration {
			name += "a"
			sent := time.Now()
			w.create(name)
			c := w.next(a)
			if c.Name != name || c.Generation != 1 {
				t.Errorf("first call: got %s generation %d, want %s generation 1", c.Name, c.Generation, name)
			}
			return c.At.Sub(sent)
		})
		w.resize(2)
		if c := w.next(a); c.Generation != 2 {
			t.Errorf("second call saw generation %d, want 2", c.Generation)
		}
		w.quiet(a, 10*time.Second)
	})
	t.Run("002-02 never two at a time for one object", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		inFlight, most := 0, 0
		entered, leave := make(chan struct{}, 100), make(chan struct{})
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			mu.Lock()
			inFlight++
			most = max(most, inFlight)
			mu.Unlock()
			entered <- struct{}{}
			<-leave
			mu.Lock()
			inFlight--
			mu.Unlock()
			return loop.Done()
		})
		w := newControllerTest(t, a, options{Workers: 4})
		w.create("a")
		<-entered
		var last int64
		for size := range 20 {
			last = w.resize(size + 1).Generation
		}
		<-time.After(500 * time.Millisecond) // a second call would begin now
		close(leave)
		for w.next(a).Generation != last {
		}
		if most != 1 {
			t.Errorf("%d calls for one object were under way at once, want 1", most)
		}
	})
	t.Run("002-03 different objects run in parallel", func(t *testing.T) {
		t.Parallel()
		var barrier sync.WaitGroup
		barrier.Add(4)
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			barrier.Done()
			barrier.Wait()
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		for _, name := range []string{"a", "b", "c", "d"} {
			w.create(name)
		}
		for range 4 {
			w.next(a)
		}
	})
	t.Run("an event during a call leads to exactly one more", func(t *testing.T) {
		t.Parallel()
		entered, leave := make(chan struct{}, 2), make(chan struct{})
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			entered <- struct{}{}
			<-leave
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		<-entered
		var newest int64
		for size := range 3 {
			newest = w.resize(size + 1).Generation
		}
		w.create("b") // whose event is delivered after those of a
		<-entered
		close(leave)
		var calls []call
		for range 3 {
			if c := w.next(a); c.Name == "a" {
				calls = append(calls, c)
			}
		}
		if len(calls) != 2 {
			t.Fatalf("%d calls for a, want 2", len(calls))
		}
		first, second := calls[0], calls[1]
		if second.Generation != newest {
			t.Errorf("the second call saw generation %d, want the newest, %d", second.Generation, newest)
		}
		if second.At.Before(first.Ended) {
			t.Error("the second call began before the first ended")
		}
		w.quiet(a, time.Second)
	})
	t.Run("002-06 After is an appointment", func(t *testing.T) {
		t.Parallel()
		first := true
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			defer func() { first = false }()
			if first {
				return loop.After(time.Second)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		one, two := w.next(a), w.next(a)
		spaced(t, time.Second, one, two)
		if diff := cmp.Diff([]string{"apply status"}, w.writes()); diff != "" {
			t.Errorf("the second call writes nothing (-want +got):\n%s", diff)
		}
	})
	t.Run("002-07 Done is silence", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(nil)
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a)
		w.await("a", "to be Ready", ready)
		w.awaitEvent("a", "Succeeded") // the last request of the pass
		w.requests.Reset()
		w.quiet(a, 10*time.Second)
		for _, r := range w.requests.All() {
			if r.Verb != "watch" {
				t.Errorf("a finished object costs a request: %s", r)
			}
		}
	})
	t.Run("002-08 an event goes before an appointment", func(t *testing.T) {
		t.Parallel()
		entered, leave := make(chan struct{}, 9), make(chan struct{})
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			entered <- struct{}{}
			<-leave
			if r.Obj.Generation == 1 {
				return loop.After(time.Hour)
			}
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		names := 0
		prompt(t, "the pass for a pending event", time.Second, func() time.Duration {
			names++
			name := "a" + strconv.Itoa(names)
			w.create(name)
			<-entered
			w.patch(name, `{"spec":{"size":2}}`)
			leave <- struct{}{}
			first := w.next(a)
			<-entered
			leave <- struct{}{}
			return w.next(a).At.Sub(first.Ended)
		})
	})
}

// TestNoFinalizer proves what becomes of the finalizer of an earlier version of the operator.
func TestNoFinalizer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		why  string
		o    options
		left string
	}{
		"its default name":  {"the earlier version named none", options{NoFinalizer: true}, finalizer},
		"a name of its own": {"the earlier version had a name", options{NoFinalizer: true, Finalizer: "example.org/mine"}, "example.org/mine"},
	} {
		t.Run("002-14 "+name, func(t *testing.T) {
			t.Parallel()
			w := newNamespaceTest(t)
			w.create("a", func(p *probe.Probe) { p.Finalizers = []string{"example.org/theirs", tt.left} })
			w.create("b", func(p *probe.Probe) { p.Finalizers = []string{tt.left} })
			b := w.get("b")
			if err := w.admin.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			a := newAuthor(nil)
			w.start(a, tt.o)
			got := w.await("a", "to be Ready", ready)
			if diff := cmp.Diff([]string{"example.org/theirs"}, got.Finalizers); diff != "" {
				t.Errorf("%s; finalizers (-want +got):\n%s", tt.why, diff)
			}
			testenv.Gone(t, w.admin, b, "the object that was being deleted to be gone")
			if diff := cmp.Diff([]string{"patch", "apply status"}, w.writes()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// removedOnce asserts that the one write outside the status took one finalizer off, and changed nothing else.
func (w *controllerTest) removedOnce() {
	w.t.Helper()
	var changes []string
	for _, r := range w.requests.Writes("probes", w.namespace, "a") {
		if r.Subresource == "status" {
			continue
		}
		var patch []struct{ Op, Path string }
		if err := json.Unmarshal(r.Body, &patch); err != nil {
			w.t.Errorf("%s is no list of operations: %s", r, r.Body)
		}
		for _, operation := range patch {
			if operation.Op != "test" {
				changes = append(changes, operation.Op+" "+path.Dir(operation.Path))
			}
		}
	}
	if diff := cmp.Diff([]string{"remove /metadata/finalizers"}, changes); diff != "" {
		w.t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestFinalizers proves when the finalizer comes and goes.
func TestFinalizers(t *testing.T) {
	t.Parallel()
	t.Run("002-09 002-13 the finalizer is the first write, before the author and the author's own writes", func(t *testing.T) {
		t.Parallel()
		var w *controllerTest
		written := make(chan string, 10)
		a := cleaner{author: newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			written <- w.get("a").ResourceVersion //nolint:contextcheck // it takes the context of the test
			return loop.FromError(r.Client().Create(ctx, child(r.Obj.Namespace)))
		})}
		w = newControllerTest(t, a, options{})
		w.create("a")
		c := w.next(a.author)
		if diff := cmp.Diff([]string{finalizer}, c.Finalizers); diff != "" {
			t.Errorf("finalizers in the first call (-want +got):\n%s", diff)
		}
		if version := <-written; c.Version != version {
			t.Errorf("the first call saw version %s, want the one that was written, %s", c.Version, version)
		}
		w.await("a", "to be Ready", ready)
		var sent []string
		for _, r := range w.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource != "events" }) {
			sent = append(sent, strings.TrimSpace(r.Verb+" "+r.Resource+" "+r.Subresource))
		}
		if diff := cmp.Diff([]string{"patch probes", "create configmaps", "apply probes status"}, sent); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if first := w.probeWrites()[0]; !onlyFinalizers(first.Body) {
			t.Errorf("the first write changes more than finalizers: %s", first.Body)
		}
	})
	t.Run("002-10 no call sees the object without it, though the cache is 500 ms late", func(t *testing.T) {
		t.Parallel()
		var calls atomic.Int64
		a := cleaner{author: newAuthor(func(context.Context, *run) loop.Outcome {
			if calls.Add(1) == 1 {
				return loop.Again() // in a fifth of the lag
			}
			return loop.Done()
		})}
		w := newControllerTest(t, a, options{}, (&looptest.Lag{Delay: 500 * time.Millisecond}).Wrap)
		w.create("a")
		for n := range 2 {
			if c := w.next(a.author); !cmp.Equal(c.Finalizers, []string{finalizer}) {
				t.Errorf("call %d saw the finalizers %v", n+1, c.Finalizers)
			}
		}
	})
	t.Run("002-11 removed once after one cleanup, others intact", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Finalizers = []string{"example.org/theirs"} })
		w.await("a", "to be Ready", ready)
		w.requests.Reset()
		w.delete()
		got := w.await("a", "to lose our finalizer", func(p *probe.Probe) bool { return len(p.Finalizers) == 1 })
		if diff := cmp.Diff([]string{"example.org/theirs"}, got.Finalizers); diff != "" {
			t.Errorf("finalizers left (-want +got):\n%s", diff)
		}
		if n := a.count("cleanup"); n != 1 {
			t.Errorf("cleanup was called %d times, want 1", n)
		}
		t.Run("E0-22 a foreign finalizer is named while it keeps the object", func(t *testing.T) {
			got := w.await("a", "to tell who keeps it", func(p *probe.Probe) bool { return condition(p, "Deleting") != nil })
			if m := condition(got, "Deleting").Message; m != "cleaned up; kept by finalizers of others: example.org/theirs" {
				t.Errorf("message: %q", m)
			}
		})
		t.Run("002-17 neither method is called after our finalizer is gone", func(t *testing.T) {
			before := a.count("cleanup") + a.count("reconcile")
			changed := w.resize(7)
			w.await("a", "to show the new generation", func(p *probe.Probe) bool { return p.Status.ObservedGeneration == changed.Generation })
			if after := a.count("cleanup") + a.count("reconcile"); after != before {
				t.Errorf("%d calls after the finalizer went", after-before)
			}
		})
		w.patch("a", `{"metadata":{"finalizers":null}}`)
		w.gone()
		w.removedOnce()
	})
	t.Run("002-12 Keep keeps the finalizer", func(t *testing.T) {
		t.Parallel()
		left := 3
		a := cleaner{author: newAuthor(nil), cleanup: func(context.Context, *run) loop.CleanupOutcome {
			if left--; left >= 0 {
				return loop.Keep(300 * time.Millisecond)
			}
			return loop.CleanedUp()
		}}
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.next(a.author)
		w.delete()
		var calls []call
		for range 4 {
			calls = append(calls, w.next(a.author))
		}
		spaced(t, 300*time.Millisecond, calls...)
		w.gone()
	})
	t.Run("002-13 a configured finalizer appears as it is", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{Finalizer: "example.org/mine"})
		w.create("a")
		if c := w.next(a.author); !cmp.Equal(c.Finalizers, []string{"example.org/mine"}) {
			t.Errorf("finalizers: %v", c.Finalizers)
		}
	})
	for name, o := range map[string]options{"without a Cleaner": {}, "with NoFinalizer": {NoFinalizer: true}} {
		t.Run("002-14 002-15 "+name+" there is no finalizer, and a deletion is no call", func(t *testing.T) {
			t.Parallel()
			a := newAuthor(nil)
			w := newControllerTest(t, a, o)
			w.create("b", func(p *probe.Probe) { p.Finalizers = []string{"example.org/theirs"} })
			got := w.await("b", "to be Ready", ready)
			if diff := cmp.Diff([]string{"example.org/theirs"}, got.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			w.create("a")
			w.await("a", "to be Ready", ready)
			for range 2 {
				w.next(a)
			}
			for _, r := range w.probeWrites() {
				if r.Subresource != "status" {
					t.Errorf("written beside the status: %s %s", r, r.Body)
				}
			}
			quiet := w.listen(a)
			w.delete()
			w.gone()
			quiet(time.Second)
		})
	}
	t.Run("002-16 a deletion during downtime is cleaned up after it", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.stop()
		w.delete()
		w.start(a, options{})
		w.gone()
		if n := a.count("cleanup"); n != 1 {
			t.Errorf("cleanup was called %d times, want 1", n)
		}
	})
	t.Run("002-17 from the mark on only cleanup is called", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil), cleanup: func(context.Context, *run) loop.CleanupOutcome {
			return loop.KeepUntilEvent()
		}}
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a.author)
		w.await("a", "to be Ready", ready)
		w.delete()
		w.next(a.author)
		before := a.count("reconcile")
		w.resize(9)
		if c := w.next(a.author); c.Method != "cleanup" {
			t.Errorf("the spec change called %s, want cleanup", c.Method)
		}
		if n := a.count("reconcile"); n != before {
			t.Errorf("reconcile was called %d times after the mark", n-before)
		}
		w.patch("a", `{"metadata":{"finalizers":null}}`)
	})
	t.Run("002-37 a finalizer removed by hand comes back", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.patch("a", `{"metadata":{"finalizers":null}}`)
		w.await("a", "to have its finalizer again", func(p *probe.Probe) bool { return len(p.Finalizers) == 1 })
	})
	t.Run("one life costs three writes", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a.author)
		w.delete()
		w.next(a.author)
		w.gone()
		if diff := cmp.Diff([]string{"patch", "apply status", "patch"}, w.writes()); diff != "" {
			t.Errorf("one life: finalizer, status, finalizer (-want +got):\n%s", diff)
		}
	})
}

// TestNameTaken: in a manager that checks names, two controllers with one name are an error that says what to change.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	w := newNamespaceTest(t)
	w.manage(func(mgr ctrl.Manager) error {
		o := options{Name: "taken"}
		if err := loop.New(newAuthor(nil), o).SetupWithManager(mgr); err != nil {
			return err
		}
		const want = "set up controller taken, which needs a name (Options.Name) that no other controller of the process has"
		if err := loop.New(newAuthor(nil), o).SetupWithManager(mgr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
		return nil
	}, func(o *ctrl.Options) { o.Controller.SkipNameValidation = nil })
}

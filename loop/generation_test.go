package loop_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// counter is an author of any kind that notes the names of the objects that it is called for.
type counter[T client.Object] struct {
	do    func(*loop.Run[T]) loop.Outcome
	calls chan string

	mu     sync.Mutex
	counts map[string]int
}

func newCounter[T client.Object](do func(*loop.Run[T]) loop.Outcome) *counter[T] {
	return &counter[T]{do: do, calls: make(chan string, 1000), counts: map[string]int{}}
}

func (c *counter[T]) Reconcile(_ context.Context, r *loop.Run[T]) loop.Outcome {
	defer func() { c.calls <- r.Obj.GetName() }()
	c.mu.Lock()
	c.counts[r.Obj.GetName()]++
	c.mu.Unlock()
	if c.do == nil {
		return loop.Done()
	}
	return c.do(r)
}

// total returns how many calls there were.
func (c *counter[T]) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, of := range c.counts {
		n += of
	}
	return n
}

// await waits for n calls.
func (c *counter[T]) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c.calls:
		case <-time.After(poll.Patience):
			t.Fatalf("%d calls, want %d", c.total(), n)
		}
	}
}

// silent asserts that nobody calls the author for d, nor did since the calls that the test has waited for.
func (c *counter[T]) silent(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(d) // a silence can only be listened to
	if n := len(c.calls); n != 0 {
		t.Errorf("the author was called %d times in a time of silence", n)
	}
}

// patchAs merges a JSON body into an object, or its status.
func patchAs(t *testing.T, w *controllerTest, obj client.Object, status bool, body string) {
	t.Helper()
	obj.SetNamespace(w.namespace)
	patch := client.RawPatch(types.MergePatchType, []byte(body))
	var err error
	if status {
		err = w.admin.Status().Patch(t.Context(), obj, patch)
	} else {
		err = w.admin.Patch(t.Context(), obj, patch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func probeNamed(name string) *probe.Probe {
	return &probe.Probe{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func gaugeNamed(name string) *probe.Gauge {
	return &probe.Gauge{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func plainNamed(name string) *probe.Plain {
	return &probe.Plain{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestGenerationInStatus proves mode 1: the generation of the last success is in the status.
func TestGenerationInStatus(t *testing.T) {
	t.Parallel()
	t.Run("002-28 a status that says less causes a pass, one that says the same does not", func(t *testing.T) {
		t.Parallel()
		t.Run("api.Status", func(t *testing.T) {
			t.Parallel()
			c := newCounter[*probe.Probe](nil)
			w := newControllerTest(t, c, options{})
			w.create("a", func(p *probe.Probe) { p.Spec.Size = 1 })
			w.resize(2)
			w.await("a", "to be applied", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
			settle(t, c)
			patchAs(t, w, probeNamed("a"), true, `{"status":{"appliedGeneration":1}}`)
			c.await(t, 1)
			w.await("a", "to say the truth again", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
			patchAs(t, w, probeNamed("a"), true, `{"status":{"appliedGeneration":2,"note":"theirs"}}`)
			c.silent(t, time.Second)
			patchAs(t, w, probeNamed("a"), true, `{"status":null}`) // unset is less, too
			c.await(t, 1)
			c.silent(t, time.Second)
		})
		t.Run("observedGeneration alone", func(t *testing.T) {
			t.Parallel()
			c := newCounter[*probe.Gauge](nil)
			w := newNamespaceTest(t)
			w.manage(loop.New(c, loop.Options[*probe.Gauge]{Generation: loop.ObservedGeneration}).SetupWithManager)
			createAs(t, w, gaugeNamed("a"))
			patchAs(t, w, gaugeNamed("a"), false, `{"spec":{"size":2}}`)
			awaitGauge(t, w, 2)
			settle(t, c)
			patchAs(t, w, gaugeNamed("a"), true, `{"status":{"observedGeneration":1}}`)
			c.await(t, 1)
			awaitGauge(t, w, 2)
			patchAs(t, w, gaugeNamed("a"), true, `{"status":{"observedGeneration":2,"note":"theirs"}}`)
			c.silent(t, time.Second)
			patchAs(t, w, gaugeNamed("a"), true, `{"status":null}`)
			c.await(t, 1)
			c.silent(t, time.Second)
		})
	})
	t.Run("002-29 the kind decides at the start", func(t *testing.T) {
		t.Parallel()
		var log logLines
		c := newCounter[*probe.Plain](nil)
		w := newNamespaceTest(t)
		w.log = funcr.New(func(_, args string) { log.add(args) }, funcr.Options{})
		w.manage(loop.New(c, loop.Options[*probe.Plain]{Generation: loop.ObservedGeneration}).SetupWithManager)
		if n := log.count("has no status.observedGeneration"); n != 1 {
			t.Errorf("that the kind has no such field was logged %d times before there was any object, want once", n)
		}
		for n := range 3 {
			createAs(t, w, plainNamed(fmt.Sprintf("p%d", n)))
		}
		c.await(t, 3)
		patchAs(t, w, plainNamed("p1"), false, `{"metadata":{"labels":{"theirs":"yes"}}}`)
		c.silent(t, time.Second)
		patchAs(t, w, plainNamed("p1"), false, `{"spec":{"size":2}}`)
		c.await(t, 1)
		if n := log.count("has no status.observedGeneration"); n != 1 {
			t.Errorf("that the kind has no such field was logged %d times for three objects, want once", n)
		}
		// A Gauge whose status was never set needs nothing else.
		g := newCounter[*probe.Gauge](nil)
		w.manage(loop.New(g, loop.Options[*probe.Gauge]{Generation: loop.ObservedGeneration}).SetupWithManager)
		createAs(t, w, gaugeNamed("a"))
		awaitGauge(t, w, 1)
		if n := log.count("has no status.observedGeneration"); n != 1 {
			t.Errorf("logged for a kind that has the field, too")
		}
	})
	t.Run("002-30 002-31 002-32 002-33 with observedGeneration alone", func(t *testing.T) {
		t.Parallel()
		again, leave := make(chan struct{}, 9), make(chan struct{})
		c := newCounter(func(r *loop.Run[*probe.Gauge]) loop.Outcome {
			r.Obj.Status.ObservedGeneration = 99 // the loop's own
			switch {
			case r.Obj.Spec.Size == 1:
				return loop.Done().Writing(loop.WriteNothing)
			case r.Obj.Spec.Size == 2:
				return loop.Fail(errBroken)
			case r.Obj.Spec.Size == 3 && r.Obj.Labels["seen"] == "":
				r.Obj.Labels = map[string]string{"seen": "yes"}
				return loop.Done().Writing(loop.WriteMetadata)
			case r.Obj.Spec.Size == 3:
				again <- struct{}{}
				<-leave
			}
			return loop.Done()
		})
		w := newNamespaceTest(t)
		w.manage(loop.New(c, loop.Options[*probe.Gauge]{Generation: loop.ObservedGeneration, Retry: linear(-1)}).SetupWithManager)
		createAs(t, w, gaugeNamed("a"))
		awaitGauge(t, w, 1)
		size := func(n int) {
			settle(t, c)
			patchAs(t, w, gaugeNamed("a"), false, fmt.Sprintf(`{"spec":{"size":%d}}`, n))
		}
		size(1)
		awaitGauge(t, w, 2)
		size(2)
		c.await(t, 1)
		settle(t, c)
		if got := liveGauge(t, w); got.Status.ObservedGeneration != 2 {
			t.Errorf("after a failure observedGeneration is %d, want 2", got.Status.ObservedGeneration)
		}
		size(3)
		<-again
		if got := liveGauge(t, w); got.Status.ObservedGeneration != 2 || got.Labels["seen"] == "" {
			t.Errorf("after a pass that writes metadata observedGeneration is %d, labels %v; want 2", got.Status.ObservedGeneration, got.Labels)
		}
		close(leave)
		awaitGauge(t, w, 4)
		size(4)
		awaitGauge(t, w, 5)
	})
}

// TestGenerationInMemory proves mode 2, for kinds whose status has no generation.
func TestGenerationInMemory(t *testing.T) {
	t.Parallel()
	t.Run("002-35 metadata is no news, the spec is, and a restart is for all", func(t *testing.T) {
		t.Parallel()
		c := newCounter[*probe.Plain](nil)
		w := newNamespaceTest(t)
		w.manage(loop.New(c, loop.Options[*probe.Plain]{}).SetupWithManager)
		for n := range 50 {
			createAs(t, w, plainNamed(fmt.Sprintf("p%d", n)))
		}
		c.await(t, 50)
		patchAs(t, w, plainNamed("p1"), false, `{"metadata":{"labels":{"theirs":"yes"},"annotations":{"example.org/theirs":"yes"}}}`)
		c.silent(t, time.Second)
		patchAs(t, w, plainNamed("p1"), false, `{"spec":{"size":2}}`)
		c.await(t, 1)
		c.silent(t, time.Second)
		w.stop()
		again := newCounter[*probe.Plain](nil)
		w.manage(loop.New(again, loop.Options[*probe.Plain]{}).SetupWithManager)
		again.await(t, 50)
		again.silent(t, time.Second)
		if diff := cmp.Diff(50, len(again.counts)); diff != "" {
			t.Errorf("objects visited after the restart (-want +got):\n%s", diff)
		}
	})
}

// settle waits until no more calls come, and drops those that came.
func settle[T client.Object](t *testing.T, c *counter[T]) {
	t.Helper()
	for {
		select {
		case <-c.calls:
		case <-time.After(500 * time.Millisecond):
			return
		}
	}
}

func createAs(t *testing.T, w *controllerTest, obj client.Object) {
	t.Helper()
	obj.SetNamespace(w.namespace)
	if err := w.admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func liveGauge(t *testing.T, w *controllerTest) *probe.Gauge {
	t.Helper()
	g := &probe.Gauge{}
	if err := w.admin.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "a"}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func awaitGauge(t *testing.T, w *controllerTest, generation int64) {
	t.Helper()
	why := fmt.Sprintf("observedGeneration %d", generation)
	testenv.Wait(t, w.admin, liveGauge(t, w), why, func(g *probe.Gauge) bool { return g.Status.ObservedGeneration == generation })
}

// logLines collects lines of a log.
type logLines struct {
	mu  sync.Mutex
	all []string
}

func (l *logLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// count returns how many lines contain text.
func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

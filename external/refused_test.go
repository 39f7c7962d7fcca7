package external_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// rests reports whether no pass over an object is under way.
func (r *recorder) rests(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := 0
	for _, x := range r.list {
		if x.Object.Name != name {
			continue
		}
		switch x.Event.(type) {
		case trace.Start:
			open++
		case trace.End:
			open--
		}
	}
	return open == 0
}

// passes does what makes the operator visit the object "a" and waits for the end of n visits.
func (w *operatorTest) passes(n int, do func()) {
	w.t.Helper()
	w.until(func() bool { return w.trace.rests("a") })
	before := len(w.trace.ends("a"))
	do()
	if !w.until(func() bool { return len(w.trace.ends("a")) >= before+n }) {
		w.t.Fatalf("%d passes, want %d", len(w.trace.ends("a"))-before, n)
	}
}

// TestRecovery: what may recover is tried again, what may not is left alone until something
// that it rests on is new.
func TestRecovery(t *testing.T) {
	t.Parallel()
	t.Run("E0-41 tried again if that can help, left alone until spec, credentials or policy change if not", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{}, func(o *options) {
			o.Loop.Retry = loop.Retry{Initial: 20 * time.Millisecond, Multiplier: 1.5, Jitter: -1}
		})
		w.create()
		w.ready()
		w.recovers()
		w.staysFailed()
		w.staysRefused()
		w.changesCredentials()
	})
}

// recovers: a state that may recover is observed after waits that grow.
func (w *operatorTest) recovers() {
	w.t.Helper()
	w.cloud.settle("ERROR")
	w.poke("error")
	w.failing("OutOfStock")
	w.passes(6, func() {})
	ends := w.trace.ends("a")
	for ends = ends[len(ends)-5:]; len(ends) > 1; ends = ends[1:] {
		if ends[1].Again <= ends[0].Again {
			w.t.Errorf("comes back after %s and then after %s; want backoff", ends[0].Again, ends[1].Again)
		}
	}
	w.cloud.settle("ONLINE")
	w.ready()
}

// staysFailed: a state that cannot recover is left alone until the spec is new.
func (w *operatorTest) staysFailed() {
	w.t.Helper()
	w.cloud.settle("BROKEN")
	w.poke("broken")
	w.failing("OutOfStock")
	w.settled("a")
	if calls := w.cloud.count(http.MethodPut) + w.cloud.count(http.MethodDelete); calls != 0 {
		w.t.Errorf("changed though nothing can help: %v", w.cloud.calls(false))
	}
	w.resize(2)
	w.awaitCalls(http.MethodPut, 1)
	w.cloud.settle("ONLINE")
	w.poke("mended")
	w.ready()
}

// staysRefused: a call that the API refused is made again for a new policy, a new spec and a
// new process, which may have other credentials, and for nothing else.
func (w *operatorTest) staysRefused() {
	w.t.Helper()
	w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusBadRequest, body: "no such size"}))
	puts := w.cloud.count(http.MethodPut)
	again := func(why string, ask func(), want int) {
		w.t.Helper()
		puts += want
		if w.passes(1, ask); !w.until(func() bool { return w.cloud.count(http.MethodPut) >= puts }) || w.cloud.count(http.MethodPut) != puts {
			w.t.Errorf("%s: %d updates, want %d", why, w.cloud.count(http.MethodPut), puts)
		}
	}
	again("a spec that is refused", func() { w.resize(3) }, 1)
	w.failing("UpdateInvalid")
	again("what is no reason", func() { w.annotate(api.AnnotationPaused, "false") }, 0)
	again("a new policy", func() { w.annotate(api.AnnotationAdoption, "never") }, 1)
	again("a new spec", func() { w.resize(4) }, 1)
	again("a new process", func() { w.stop(); w.start() }, 1)
	w.cloud.faulty(nil)
	w.resize(5)
	w.ready()
}

// changesCredentials: credentials that are refused are no verdict on the spec.
func (w *operatorTest) changesCredentials() {
	w.t.Helper()
	w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusForbidden, body: "key revoked"}))
	w.resize(6)
	w.failing("UpdateDenied")
	w.cloud.faulty(nil)
	w.await("the spec to be applied", func(o *thing.Thing) bool { return is(o, "Ready", "True") && o.Status.AppliedGeneration == o.Generation })
}

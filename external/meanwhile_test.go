package external_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestChangedMeanwhile: while the first observation of a new process is under way, a user forbids
// what the process is about to do.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.stop()
	w.resize(2)
	forbid := sync.OnceFunc(func() { w.annotate(api.AnnotationAccess, "read-only") })
	w.cloud.with(func() { w.cloud.before = func(string, string) { forbid() } })
	w.start()
	w.failing("UpdateNotPermitted")
	if n := w.cloud.count(http.MethodPut); n != 0 {
		t.Errorf("%d updates by an old copy of the object, which was still permitted to", n)
	}
}

// TestSomebodyElsesThingGoes: what bore the name was never ours, so that nothing was lost
// when it went.
func TestForeignResourceIsDeleted(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.cloud.put("a", item{Size: 7, State: "ONLINE"})
	w.create()
	w.failing("NotOurs")
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.poke("observe")
	got := w.ready()
	if got.Status.External.Incarnation != 1 || slices.ContainsFunc(w.trace.rules("a"), func(r string) bool { return strings.HasPrefix(r, "D-14") }) {
		t.Errorf("taken for a loss of ours: incarnation %d, decisions %v", got.Status.External.Incarnation, w.trace.rules("a"))
	}
}

// TestRenamedBeforeItsTime: the spec gets another name while nothing was made yet.
func TestRenamedBeforeCreate(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create(needs("b"), func(o *thing.Thing) { o.Spec.Name = "wrogn" })
	w.pending("a", "b")
	w.patch(`{"spec":{"name":"wrong"}}`)
	w.cloud.put("wrong", item{Size: 7, State: "ONLINE"})
	w.createAs("b")
	t.Run("what bears the new name is observed first", func(t *testing.T) {
		w.failing("NotOurs")
		if w.called(http.MethodPost, "wrong") || w.called(http.MethodPost, "wrogn") {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
	t.Run("a stranger's name is not kept", func(t *testing.T) {
		w.patch(`{"spec":{"name":"right"}}`)
		w.ready()
		if w.cloud.get("right") == nil || w.cloud.get("wrogn") != nil {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
}

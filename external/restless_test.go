package external_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestRestlessValue: updates are accepted and change nothing, and what is observed differs
// each time. D-20 ends that as well.
func TestRestlessValue(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, drifting(20*time.Millisecond))
	w.create()
	w.ready()
	n := 100
	w.cloud.with(func() {
		w.cloud.before = func(method, name string) {
			if method == http.MethodGet {
				w.cloud.change(name, func(i *item) { n++; i.Size = n })
			}
		}
	})
	w.failing("NotConverging")
	w.settled("a")
	w.settled("a")
	if updates := w.cloud.count(http.MethodPut); updates != 3 {
		t.Errorf("%d updates, want 3 and no more", updates)
	}
}

// TestBusyWriter: after a restart somebody writes the object's status during each observation. That
// concerns neither what is to be done nor to whom, so the deletion goes on.
func TestBusyWriter(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.stop()
	n := 0
	w.cloud.with(func() {
		w.cloud.before = func(method, _ string) {
			if method == http.MethodGet {
				n++
				w.writeStatus(n)
			}
		}
	})
	w.delete()
	w.start()
	w.gone()
	if w.cloud.get("a") != nil {
		t.Error("the thing is still there")
	}
}

// writeStatus writes to the status of "a" as somebody else would.
func (w *operatorTest) writeStatus(n int) {
	obj := &thing.Thing{}
	obj.Namespace, obj.Name = w.namespace, "a"
	body := []byte(`{"status":{"host":"somewhere-` + string(rune('a'+n%26)) + `"}}`)
	_ = w.admin.Status().Patch(w.t.Context(), obj, mergePatch(body)) // it may be gone by now
}

// TestCorrectedWhileDown: a thing failed for good, and its spec is corrected while no operator
// runs. The next process tries it, once.
func TestCorrectedWhileDown(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.cloud.change("a", func(i *item) { i.State = "BROKEN" })
	w.poke("observe")
	w.failing("OutOfStock")
	w.stop()
	w.resize(2)
	w.start()
	w.awaitCalls(http.MethodPut, 1)
	w.settled("a")
	if updates := w.cloud.count(http.MethodPut); updates != 1 {
		t.Errorf("%d updates of what failed for good, want 1 for the new spec", updates)
	}
	w.cloud.change("a", func(i *item) { i.Size = 7 })
	w.settled("a")
	if updates := w.cloud.count(http.MethodPut); updates != 1 {
		t.Errorf("%d updates, want no other for the same spec", updates)
	}
}

package external_test

import (
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestLostBesideAWish: what an object has is lost while an older object wants it too. Who had it
// makes it again, and the other one goes on waiting.
func TestLostBesideAWish(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		driver driver[*thing.Thing]
		change func(*options)
	}{
		"marked as it is made": {named{}, func(*options) {}},
		"marked later":         {later{}, markLater},
		"unmarked":             {named{}, func(o *options) { o.Unmarked = true }},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, kind.driver, kind.change)
			notOurs := func(o *thing.Thing) bool {
				return condition(o, "Failed").Reason == "NotOurs" && condition(o, "Failed").ObservedGeneration == o.Generation
			}
			w.cloud.put("taken", item{Size: 7, State: "ONLINE"})
			older := w.createAs("b", func(o *thing.Thing) { o.Spec.Name = "taken" })
			w.awaitAs("b", "NotOurs", notOurs)
			if !w.until(func() bool { return time.Now().Unix() > older.CreationTimestamp.Unix() }) {
				t.Fatal("time stands still")
			}
			w.create()
			w.ready()
			w.change("b", func(o *thing.Thing) { o.Spec.Name = "a" })
			w.awaitAs("b", "NotOurs under the new name", notOurs)
			w.cloud.with(func() { delete(w.cloud.items, "a") })
			w.change("b", annotated("trimtab.dev/reconcile", "observe"))
			w.awaitAs("b", "an observation", func(o *thing.Thing) bool { return o.Status.HandledReconcile == "observe" })
			w.poke("observe")
			got := w.await("the second incarnation", func(o *thing.Thing) bool {
				return is(o, "Ready", "True") && o.Status.External != nil && o.Status.External.Incarnation == 2
			})
			if b := w.get("b"); !notOurs(b) || w.cloud.get("a") == nil {
				t.Errorf("the older object: %+v; the one that had it: %+v", b.Status, got.Status)
			}
		})
	}
}

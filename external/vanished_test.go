package external_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/overtake"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/trace"
)

// overtaken is an operatorTest in which the deletion of the object "a" is in progress while the operator
// makes its first writes to it.
func overtaken(t *testing.T, d driver[*thing.Thing], writes int, change ...func(*options)) *operatorTest {
	t.Helper()
	w := prepareOperatorTest(t, d, change...)
	deletion := overtake.Of("things", "a", writes)
	w.cfg.Wrap(deletion.Transport)
	deletion.Install(t, w.cfg, w.admin, w.createAs("canary"), "things")
	return w
}

// TestVanished: the API server removes the object past the finalizer that is written meanwhile.
// What the operator makes after that, knowing nothing, goes too.
func TestVanished(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T, change ...func(*options)) *operatorTest {
		t.Helper()
		return overtaken(t, things{}, 1, change...)
	}
	t.Run("the thing is made, and deleted again", func(t *testing.T) {
		t.Parallel()
		w := prepare(t)
		w.start()
		obj := w.create()
		w.delete()
		w.gone()
		w.cleanedUp(obj)
	})
	t.Run("also when the create is answered late", func(t *testing.T) {
		t.Parallel()
		w := prepare(t, func(o *options) { o.CallDeadline = time.Minute })
		gone := make(chan struct{})
		w.cloud.with(func() {
			w.cloud.before = func(method, _ string) {
				if method == http.MethodPost {
					<-gone
				}
			}
		})
		w.start()
		obj := w.create()
		w.delete()
		w.gone()
		close(gone)
		w.cleanedUp(obj)
	})
	t.Run("and when its answer is lost, after the grace", func(t *testing.T) {
		t.Parallel()
		w := prepare(t, func(o *options) { o.CreateGrace, o.CallDeadline = time.Second, 300*time.Millisecond })
		w.cloud.faulty(always(http.MethodPost, answer{hang: true, effect: true}))
		w.start()
		obj := w.create()
		w.delete()
		w.gone()
		w.cleanedUp(obj)
	})
	t.Run("what is to stay by policy stays", func(t *testing.T) {
		t.Parallel()
		w := prepare(t)
		w.start()
		obj := w.create(annotated("trimtab.dev/deletion", "orphan"))
		w.delete()
		w.gone()
		w.awaitEvent("CleanedUp")
		if w.cloud.get(name(obj)) == nil {
			t.Errorf("the thing is gone: %v", w.cloud.calls(false))
		}
	})
}

// cleanedUp waits until that is reported, and wants nothing left outside.
func (w *operatorTest) cleanedUp(obj *thing.Thing) {
	w.t.Helper()
	w.awaitEvent("CleanedUp")
	if w.cloud.get(name(obj)) != nil {
		w.t.Errorf("the thing is left: %v", w.cloud.calls(false))
	}
}

// TestVanishedUnmarked: where no mark tells whose a thing is, the record in the last version
// does, unless a successor has the thing by now.
func TestVanishedUnmarked(t *testing.T) {
	t.Parallel()
	unmarked := func(o *options) { o.Unmarked = true }
	refuseDelete := always(http.MethodDelete, answer{code: http.StatusServiceUnavailable})
	t.Run("the thing goes", func(t *testing.T) {
		t.Parallel()
		w := overtaken(t, named{}, 2, unmarked)
		w.start()
		w.create()
		w.delete()
		w.gone()
		w.awaitEvent("CleanedUp")
		if w.cloud.get("a") != nil {
			t.Errorf("the thing is left: %v", w.cloud.calls(false))
		}
	})
	t.Run("but not a successor's", func(t *testing.T) {
		t.Parallel()
		w := overtaken(t, named{}, 2, unmarked)
		w.cloud.faulty(refuseDelete)
		w.start()
		before := w.create()
		w.delete()
		w.gone()
		w.awaitEvent("DeleteFailed")
		after := w.create()
		w.awaitAs("a", "to wait", func(o *thing.Thing) bool { return condition(o, "Ready").Reason == "PredecessorNotCleanedUp" })
		record := w.recordOf(before)
		after = w.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationExternal,
			strings.ReplaceAll(record, string(before.UID), string(after.UID))))
		w.visited(after)
		w.cloud.change("a", func(i *item) { i.Host, i.Tags = "the successor's", nil })
		w.cloud.faulty(nil)
		w.awaitEvent("CleanedUp")
		w.ready()
		if got := w.cloud.get("a"); got == nil || got.Host != "the successor's" {
			t.Errorf("the successor's thing was deleted: %v", w.cloud.calls(false))
		}
	})
}

// visited waits for a visit that knows this version of the object.
func (w *operatorTest) visited(obj *thing.Thing) {
	w.t.Helper()
	current := func(s trace.Start) bool { return !s.Vanished && !older(s.ResourceVersion, obj.ResourceVersion) }
	if !w.until(func() bool { return slices.ContainsFunc(events[trace.Start](w.trace, obj.Name), current) }) {
		w.t.Fatalf("no visit of %s at version %s; decisions %v", obj.Name, obj.ResourceVersion, w.trace.rules(obj.Name))
	}
}

// older compares resource versions, which Kubernetes promises to be decimal numbers that grow.
func older(a, b string) bool {
	return len(a) < len(b) || len(a) == len(b) && a < b
}

// recordOf is the record that the operator wrote for an object.
func (w *operatorTest) recordOf(obj *thing.Thing) string {
	w.t.Helper()
	for _, r := range w.requests.Writes("things", w.namespace, obj.Name) {
		var body thing.Thing
		if err := json.Unmarshal(r.Body, &body); err == nil && body.Annotations[api.AnnotationExternal] != "" {
			return body.Annotations[api.AnnotationExternal]
		}
	}
	w.t.Fatal("the operator wrote no record")
	return ""
}

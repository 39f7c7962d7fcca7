package external_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestExisting: a thing was there before its object.
func TestExisting(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.cloud.put("a", item{Size: 7, State: "ONLINE"})
	w.create()
	t.Run("E1-14 what is not ours is not touched", func(t *testing.T) {
		got := w.failing("NotOurs")
		if !strings.Contains(condition(got, "Failed").Message, api.AnnotationAdoption) || len(w.cloud.calls(false)) != 0 {
			t.Errorf("message %q, calls %v", condition(got, "Failed").Message, w.cloud.calls(false))
		}
		if got.Status.External != nil || got.Status.Host != "" {
			t.Errorf("somebody else's thing is shown: %+v", got.Status)
		}
	})
	t.Run("E1-14 nor deleted with its object", func(t *testing.T) {
		w.delete()
		w.gone()
		if w.cloud.get("a") == nil || len(w.cloud.calls(false)) != 0 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
	t.Run("E1-14 adopted if identical", func(t *testing.T) {
		w.create(annotated(api.AnnotationAdoption, "if-identical"))
		w.failing("NotOurs")
		w.resize(7)
		w.ready()
		wantCalls(t, w, "none")
		w.awaitEvent("adopted")
	})
	t.Run("E1-14 what was adopted is ours, after a restart too", func(t *testing.T) {
		w.stop()
		w.resize(8)
		w.start()
		w.ready()
		if got := w.cloud.get("a").Size; got != 8 {
			t.Errorf("size %d", got)
		}
		w.delete()
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("E1-14 adopted always", func(t *testing.T) {
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create(annotated(api.AnnotationAdoption, "always"))
		w.ready()
		if got := w.cloud.get("a").Size; got != 1 {
			t.Errorf("size %d", got)
		}
	})
	t.Run("E1-03 a second object of the same name in the API", func(t *testing.T) {
		calls := len(w.cloud.calls(false))
		w.createAs("b", func(o *thing.Thing) { o.Spec.Name = "c"; o.Spec.Size = 3 })
		w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
		w.createAs("d", func(o *thing.Thing) { o.Spec.Name = "c" }, annotated(api.AnnotationAdoption, "always"))
		got := w.awaitAs("d", "NotOurs", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "NotOurs" })
		if !strings.Contains(condition(got, "Failed").Message, w.namespace+"/b") {
			t.Errorf("message %q", condition(got, "Failed").Message)
		}
		if now := len(w.cloud.calls(false)); now != calls+1 || w.cloud.get("c").Size != 3 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
}

func TestUnmarkedAPI(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.Unmarked = true })
	w.cloud.put("a", item{Size: 7, State: "ONLINE"})
	w.create()
	t.Run("E1-14 without marks, what was there is not ours", func(t *testing.T) {
		w.failing("NotOurs")
		w.delete()
		w.gone()
		wantCalls(t, w, "none")
	})
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.requests.Reset()
	w.create()
	w.ready()
	t.Run("without marks, the marker follows the observation and costs a write", func(t *testing.T) {
		wantWrites(t, w, "finalizer, marker, status", "patch", "patch", "apply status")
		if tags := w.cloud.get("a").Tags; len(tags) == 0 {
			t.Log("the bench cloud could hold marks, and was given one")
		}
	})
	t.Run("without marks, the record alone knows it, after a restart too", func(t *testing.T) {
		w.cloud.change("a", func(i *item) { i.Tags = nil })
		w.stop()
		w.start()
		w.resize(2)
		w.ready()
		w.delete()
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
}

func TestOrphan(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create(annotated(api.AnnotationDeletion, "orphan"))
	w.ready()
	t.Run("E0-66 the thing stays, without our mark", func(t *testing.T) {
		w.delete()
		w.gone()
		got := w.cloud.get("a")
		if got == nil || external.MarkOf(got.Tags) != nil {
			t.Errorf("%+v", got)
		}
	})
	t.Run("E0-80 retained, or deleted; what does not exist is deleted", func(t *testing.T) {
		for name, policy := range map[string]string{"kept": "orphan", "deleted": "delete", "lost": "delete"} {
			w.createAs(name, annotated(api.AnnotationDeletion, policy))
			w.readyAs(name)
			if name == "lost" { // between the last look and the deletion
				w.cloud.faulty(always("DELETE", answer{code: 404, effect: true}))
			}
			history := w.follow(name)
			w.remove(name)
			for _, o := range history.untilGone() {
				if is(o, "Failed", "True") {
					t.Errorf("%s: conditions %+v", name, o.Status.Conditions)
				}
			}
			w.cloud.faulty(nil)
			if left := w.cloud.get(name) != nil; left != (policy == "orphan") {
				t.Errorf("%s: there is a thing: %t", name, left)
			}
		}
	})
	t.Run("D-31 an unclear policy deletes nothing and leaves nothing", func(t *testing.T) {
		w.createAs("b", annotated(api.AnnotationDeletion, "orphna"))
		w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
		w.remove("b")
		w.awaitAs("b", "PolicyInvalid", func(o *thing.Thing) bool {
			return is(o, "Deleting", "True") && condition(o, "Failed").Reason == "PolicyInvalid"
		})
		if w.cloud.get("b") == nil {
			t.Error("the thing was deleted")
		}
		w.change("b", annotated(api.AnnotationDeletion, "delete"))
		if !w.until(func() bool { return w.cloud.get("b") == nil && apiGone(w, "b") }) {
			t.Error("not deleted after the correction")
		}
	})
}

// TestLostAnswers: the create happens and nobody hears of it.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.CallDeadline = 200 * time.Millisecond })
	t.Run("D-32 D-08 a create whose answer is lost is found, not repeated", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodPost, answer{hang: true, effect: true}))
		w.create()
		w.ready()
		wantCalls(t, w, "one create", "POST a")
	})
	t.Run("D-32 a delete whose answer is lost", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodDelete, answer{hang: true, effect: true}))
		w.delete()
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
}

// TestRestarts: the operator stops between a create and everything that follows it.
func TestRestarts(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusBadGateway, effect: true}))
	w.cloud.with(func() {
		w.cloud.before = func(method, _ string) {
			if method == http.MethodGet && w.cloud.count(http.MethodPost) > 0 {
				w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
			}
		}
	})
	w.create()
	w.failing("ObserveFailed")
	w.stop()
	w.cloud.with(func() { w.cloud.before, w.cloud.fault = nil, nil })
	t.Run("D-08 the next process finds what the last one made", func(t *testing.T) {
		w.start()
		w.ready()
		wantCalls(t, w, "one create", "POST a")
	})
	t.Run("D-29 the next process confirms the object before it deletes", func(t *testing.T) {
		w.stop()
		w.start()
		w.requests.Reset()
		w.delete()
		w.gone()
		wantWrites(t, w, "the finalizer, nothing else", "patch")
		reads := w.requests.Select(func(r testenv.Request) bool { return r.Verb == "get" && r.Resource == "things" && r.Name == "a" })
		if len(reads) != 1 {
			t.Errorf("read from the API server %d times, want once: %v", len(reads), reads)
		}
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("deleted by others, then deleted", func(t *testing.T) {
		w.create()
		w.ready()
		w.cloud.with(func() { delete(w.cloud.items, "a") })
		calls := len(w.cloud.calls(false))
		w.delete()
		w.gone()
		if now := w.cloud.calls(false); len(now) != calls {
			t.Errorf("calls %v", now[calls:])
		}
	})
}

func TestRecordOnAnObject(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	t.Run("D-10 a corrupt record creates nothing", func(t *testing.T) {
		w.create(annotated(api.AnnotationExternal, `{"id":"a","inc":1`))
		got := w.failing("RecordCorrupt")
		if !strings.Contains(condition(got, "Failed").Message, api.AnnotationExternal) || len(w.cloud.calls(true)) != 0 {
			t.Errorf("message %q, calls %v", condition(got, "Failed").Message, w.cloud.calls(true))
		}
	})
	t.Run("D-28 nor does it let go", func(t *testing.T) {
		w.delete()
		w.await("held back", func(o *thing.Thing) bool {
			return is(o, "Deleting", "True") && condition(o, "Failed").Reason == "RecordCorrupt"
		})
		w.patch(`{"metadata":{"annotations":{"trimtab.dev/external":null,"trimtab.dev/reconcile":"now"}}}`)
		w.gone()
	})
	t.Run("a record that is lost is found again by name and mark", func(t *testing.T) {
		w.create()
		w.ready()
		calls := w.cloud.calls(false)
		w.stop()
		w.patch(`{"metadata":{"annotations":{"trimtab.dev/external":null}}}`)
		w.start()
		w.settled("a")
		if w.get("a").Annotations[api.AnnotationExternal] == "" {
			t.Error("no record")
		}
		if diff := cmp.Diff(calls, w.cloud.calls(false)); diff != "" {
			t.Errorf("calls (-before +after):\n%s", diff)
		}
	})
	t.Run("D-23 a new name is refused, the old thing stays", func(t *testing.T) {
		w.patch(`{"spec":{"name":"other"}}`)
		got := w.failing("Renamed")
		if !strings.Contains(condition(got, "Failed").Message, `"a"`) || w.cloud.get("a") == nil || w.cloud.get("other") != nil {
			t.Errorf("message %q", condition(got, "Failed").Message)
		}
		w.patch(`{"spec":{"name":""}}`)
		w.ready()
	})
	t.Run("a name that cannot be is never asked for", func(t *testing.T) {
		calls := len(w.cloud.calls(true))
		w.createAs("b", func(o *thing.Thing) { o.Spec.Name = "no good" })
		got := w.awaitAs("b", "InvalidName", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "InvalidName" })
		if now := w.cloud.calls(true); len(now) != calls || !is(got, "Stalled", "True") {
			t.Errorf("calls %v, conditions %+v", now[calls:], got.Status.Conditions)
		}
		w.change("b", func(o *thing.Thing) { o.Spec.Name = "good" })
		w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
	})
}

// TestRecordRemoved: somebody takes our record off the object, as a tool does that replaces
// whole objects.
func TestRecordRemoved(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	creates, passes := w.cloud.count(http.MethodPost), len(w.trace.ends("a"))
	w.patch(`{"metadata":{"annotations":{"` + api.AnnotationExternal + `":null}},"spec":{"size":5}}`)
	got := w.await("the record to be back and the spec applied", func(o *thing.Thing) bool {
		return o.Annotations[api.AnnotationExternal] != "" && o.Status.AppliedGeneration == 2 && is(o, "Ready", "True")
	})
	if n := w.cloud.count(http.MethodPost); n != creates || w.cloud.get("a").Size != 5 {
		t.Errorf("%d creates, size %d; want none more than %d, and 5", n, w.cloud.get("a").Size, creates)
	}
	for _, e := range w.trace.ends("a")[passes:] {
		if e.Outcome != "Done" && e.Again > time.Second {
			t.Errorf("a pass that ended with %s put off the recovery by %s", e.Outcome, e.Again)
		}
	}
	if got.Status.External.Incarnation != 1 {
		t.Errorf("incarnation %d of a thing that was never gone", got.Status.External.Incarnation)
	}
	w.quiet(300 * time.Millisecond)
}

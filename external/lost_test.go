package external_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// stripped is what a tool leaves that replaces whole objects: neither finalizer nor record.
const stripped = `{"metadata":{"finalizers":null,"annotations":null}}`

// TestMetadataLost: finalizer and record are taken off an object whose thing exists. The
// thing is never left behind.
func TestMetadataLost(t *testing.T) {
	t.Parallel()
	away := func(string, string) *answer { return &answer{code: 503} }
	here := func(string, string) *answer { return nil }
	t.Run("while the operator is down and the API away", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.create()
		w.ready()
		w.stop()
		w.patch(stripped)
		w.cloud.faulty(away)
		w.start()
		w.failing("ObserveFailed")
		w.delete()
		w.await("to be held", func(o *thing.Thing) bool { return is(o, "Deleting", "True") && is(o, "Failed", "True") })
		w.cloud.faulty(here)
		w.goneWithResource()
	})
	t.Run("while a dependency is not ready", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.createAs("b")
		w.create(needs("b"))
		w.ready()
		w.cloud.change("b", func(i *item) { i.State = "LIMPING" })
		w.change("b", annotated(api.AnnotationReconcile, "observe"))
		w.pending("a", "b")
		w.stop()
		w.patch(stripped)
		w.start()
		w.await("to have its finalizer again", func(o *thing.Thing) bool { return len(o.Finalizers) > 0 })
		w.delete()
		w.goneWithResource()
	})
	t.Run("while the operator runs, in a later incarnation", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.create()
		w.ready()
		w.cloud.with(func() { delete(w.cloud.items, "a") })
		w.poke("observe")
		w.await("the second incarnation", func(o *thing.Thing) bool { return o.Status.External.Incarnation == 2 && is(o, "Ready", "True") })
		w.cloud.faulty(away)
		w.patch(stripped)
		w.failing("ObserveFailed")
		w.delete()
		w.cloud.faulty(here)
		w.goneWithResource()
	})
	t.Run("while the operator runs, together with another name", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.create()
		w.ready()
		w.patch(`{"metadata":{"finalizers":null,"annotations":null},"spec":{"name":"other"}}`)
		w.failing("Renamed")
		w.awaitEvent("RecordPutBack")
		w.delete()
		w.goneWithResource()
		wantCalls(t, w, "one thing", "POST a", "DELETE a")
	})
}

// goneWithThing asserts that the object goes, and its thing before it.
func (w *operatorTest) goneWithResource() {
	w.t.Helper()
	w.gone()
	if left := w.cloud.get("a"); left != nil {
		w.t.Errorf("the object is gone, its thing is not: %+v; rules %v", left, w.trace.rules("a"))
	}
}

// TestDependencyRemade: what a thing depends on is lost and made again within one pass, so
// that it is Ready all the time. What depended on it went with it.
func TestDependencyRemade(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.createAs("b")
	w.create(needs("b"))
	w.ready()
	w.cloud.with(func() { delete(w.cloud.items, "b"); delete(w.cloud.items, "a") })
	w.change("b", annotated(api.AnnotationReconcile, "observe"))
	w.await("to be made again", func(o *thing.Thing) bool { return o.Status.External.Incarnation == 2 && is(o, "Ready", "True") })
	if w.cloud.get("a") == nil {
		t.Error("the thing says Ready and is not there")
	}
}

// TestCorruptRecord follows the way out that the message names, to the letter.
func TestCorruptRecord(t *testing.T) {
	t.Parallel()
	const wayOut = `{"metadata":{"annotations":{"trimtab.dev/external":null,"trimtab.dev/reconcile":"mended"}}}`
	broken := annotated(api.AnnotationExternal, `{"id":"a","inc":1`)
	t.Run("of an object that lives", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.create(broken)
		got := w.failing("RecordCorrupt")
		if m := condition(got, "Failed").Message; !strings.Contains(m, "removed") || !strings.Contains(m, api.AnnotationReconcile) {
			t.Errorf("the message does not name the way out: %q", m)
		}
		w.patch(wayOut)
		w.ready()
	})
	t.Run("of an object that is to go", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		w.create(broken)
		w.failing("RecordCorrupt")
		w.delete()
		w.await("to be held", func(o *thing.Thing) bool { return is(o, "Deleting", "True") })
		w.patch(wayOut)
		w.gone()
	})
}

// TestClockAhead: the record was written by a machine whose clock is an hour ahead.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.CreateGrace = time.Second })
	w.cloud.put("a", item{Size: 1, State: "ONLINE"})
	w.create(annotated(api.AnnotationAdoption, "always"))
	w.ready()
	w.stop()
	before, rest, found := strings.Cut(w.get("a").Annotations[api.AnnotationExternal], `"done":"`)
	if !found {
		t.Fatal("the record of an adopted thing has no time")
	}
	_, after, _ := strings.Cut(rest, `"`)
	w.annotate(api.AnnotationExternal, before+`"done":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)+`"`+after)
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.start()
	w.delete()
	w.gone()
}

// clueless cannot tell what one object depends on.
type clueless struct{ named }

func (clueless) DependsOn(o *thing.Thing) []external.Dependency {
	if o.Name == "a" {
		panic("nil map")
	}
	return []external.Dependency{{To: &thing.Thing{}, Name: "b"}}
}

// TestDependsOnPanics: a mistake of the driver is reported on the object and ends nothing else.
func TestDependsOnPanics(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, clueless{})
	w.create()
	w.await("the panic to be reported", func(o *thing.Thing) bool {
		return strings.Contains(condition(o, "Ready").Message, "panicked")
	})
}

// forgetful does not return the mark of a thing.
type forgetful struct{ named }

func (f forgetful) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	seen, err := f.named.Observe(ctx, r)
	seen.Mark = nil
	return seen, err
}

// TestForgottenMark: the likeliest mistake of an author is reported as such.
func TestForgottenMark(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, forgetful{})
	w.create()
	got := w.failing("NotOurs")
	if m := condition(got, "Failed").Message; !strings.Contains(m, "forgetful must store CreateRequest.Mark") {
		t.Errorf("message %q", m)
	}
}

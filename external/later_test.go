package external_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// region: later

// later are things whose API takes a second call for their tags.
type later struct{ named }

func (later) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	i := item{Size: r.Object.Spec.Size}
	return external.CreateResponse[item]{}, r.Client.call(ctx, http.MethodPost, r.ID, &i, nil)
}

func (later) Mark(ctx context.Context, r external.MarkRequest[*thing.Thing, *cloudClient]) (external.MarkResponse, error) {
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, nil, &i); err != nil {
		return external.MarkResponse{}, err
	}
	i.Tags = r.Mark.On(i.Tags)
	return external.MarkResponse{}, r.Client.call(ctx, http.MethodPut, r.ID, &i, nil)
}

// endregion: later

func markLater(o *options) { o.MarkLater = true }

// TestMarkLater: the mark comes in a second call.
func TestMarkLater(t *testing.T) {
	t.Parallel()
	t.Run("made, marked, changed, deleted", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, later{}, markLater)
		w.create()
		obj := w.ready()
		if got := external.MarkOf(w.cloud.get("a").Tags)[external.MarkUID]; got != string(obj.UID) {
			t.Errorf("the thing bears the mark of %q", got)
		}
		wantWrites(t, w, "finalizer, marker, seen, status", "patch", "patch", "patch", "apply status")
		wantCalls(t, w, "made and marked", "POST a", "PUT a")
		w.delete()
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("the operator is killed between the calls", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, later{}, markLater)
		w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusServiceUnavailable}))
		w.create()
		w.failing("MarkFailed")
		w.stop()
		w.cloud.faulty(nil)
		w.start()
		w.ready()
		creates := slices.DeleteFunc(w.cloud.calls(false), func(call string) bool { return call != "POST a" })
		if len(creates) != 1 {
			t.Errorf("%d creates, want one: %v", len(creates), w.cloud.calls(false))
		}
		w.stop()
		w.cloud.change("a", func(i *item) { i.Tags = nil }) // somebody replaced it
		w.start()
		if m := condition(w.failing("NotOurs"), "Failed").Message; !strings.Contains(m, "nothing shows that it belongs to this object") {
			t.Errorf("message %q", m)
		}
	})
	t.Run("its object is deleted between the calls, while nobody runs", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, later{}, markLater)
		w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusServiceUnavailable}))
		w.create()
		w.failing("MarkFailed")
		w.stop()
		w.delete()
		w.start()
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is left behind")
		}
	})
	t.Run("what was there before is not marked", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, later{}, markLater)
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create()
		w.failing("NotOurs")
		w.stop()
		w.start()
		w.settled("a")
		w.failing("NotOurs")
		w.delete()
		w.gone()
		wantCalls(t, w, "none")
	})
	t.Run("a mark that does not stay is reported, and not put on for ever", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, later{}, markLater)
		w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusOK, body: "{}"}))
		w.create()
		got := w.failing("NotConverging")
		if m := condition(got, "Failed").Message; !strings.Contains(m, "no observation shows the ownership mark") {
			t.Errorf("message %q", m)
		}
		wantCalls(t, w, "one create and three marks", "POST a", "PUT a", "PUT a", "PUT a")
		w.cloud.faulty(nil)
		w.resize(2)
		w.ready()
	})
	t.Run("it needs a driver that can mark", func(t *testing.T) {
		t.Parallel()
		defer func() {
			if said, _ := recover().(string); !strings.Contains(said, "Mark(context.Context, MarkRequest") {
				t.Errorf("New says %q", said)
			}
		}()
		o := options{MarkLater: true, Connect: func(context.Context) (*cloudClient, error) { return &cloudClient{}, nil }}
		external.New(named{}, o)
	})
}

// vendorIDs are things to which the API assigns ids, and a driver that returns them.
type vendorIDs struct{ named }

func (vendorIDs) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	id := "i-" + r.ID + "-" + strings.Repeat("x", len(r.Client.base)%2) // not the name
	i := item{Size: r.Object.Spec.Size, Tags: r.Mark}
	return external.CreateResponse[item]{ID: id}, r.Client.call(ctx, http.MethodPost, id, &i, nil)
}

// TestAssignedID: a driver that returns another id than the name is reported, and nothing is
// made twice or lost.
func TestAssignedID(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, vendorIDs{})
	w.create()
	got := w.failing("UndeclaredID")
	made := w.cloud.calls(false)
	if m := condition(got, "Failed").Message; len(made) != 1 || !strings.Contains(m, strings.TrimPrefix(made[0], "POST ")) {
		t.Fatalf("message %q, calls %v", m, made)
	}
	id := strings.TrimPrefix(made[0], "POST ")
	t.Run("nothing more is created, by a new process neither", func(t *testing.T) {
		w.settled("a")
		w.stop()
		w.age("a")
		w.start()
		w.resize(2)
		w.settled("a")
		if diff := cmp.Diff(made, w.cloud.calls(false)); diff != "" {
			t.Errorf("calls (-first +all):\n%s", diff)
		}
	})
	t.Run("the thing goes by its id", func(t *testing.T) {
		w.delete()
		w.gone()
		if w.cloud.get(id) != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("an object that is restored gets the thing by its id", func(t *testing.T) {
		w.create()
		backup := w.failing("UndeclaredID")
		made := w.cloud.calls(false)
		w.stop()
		w.patch(`{"metadata":{"finalizers":null}}`)
		w.delete()
		w.gone()
		w.start()
		w.create(annotated(api.AnnotationExternal, backup.Annotations[api.AnnotationExternal]))
		w.failing("UndeclaredID")
		if diff := cmp.Diff(made, w.cloud.calls(false)); diff != "" {
			t.Errorf("calls (-before +after):\n%s", diff)
		}
		w.delete()
		w.gone()
		if w.cloud.get(id) != nil {
			t.Error("the thing is still there")
		}
	})
	t.Run("what no observation shows by its id holds the object", func(t *testing.T) {
		w.create()
		w.failing("UndeclaredID")
		w.cloud.faulty(func(method, _ string) *answer {
			if method == http.MethodGet {
				return &answer{code: http.StatusNotFound}
			}
			return nil
		})
		w.delete()
		held := w.await("to be held", func(o *thing.Thing) bool {
			return is(o, "Deleting", "True") && condition(o, "Failed").Reason == "UndeclaredID"
		})
		if m := condition(held, "Failed").Message; !strings.Contains(m, id) || !strings.Contains(m, api.AnnotationDeletion) {
			t.Errorf("message %q", m)
		}
		w.annotate(api.AnnotationDeletion, "orphan")
		w.gone()
	})
}

// replaced are things that cannot be changed: the driver's Update makes another one.
type replaced struct{ named }

func (replaced) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size = r.Object.Spec.Size
	id := r.ID + "-2"
	if err := r.Client.call(ctx, http.MethodPost, id, &r.Have, nil); err != nil {
		return external.UpdateResponse[item]{}, err
	}
	return external.UpdateResponse[item]{ID: id}, r.Client.call(ctx, http.MethodDelete, r.ID, nil, nil)
}

// TestAssignedByUpdate: an update that answers with another id is reported, and nothing is made
// twice or lost.
func TestAssignedByUpdate(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, replaced{})
	w.create()
	w.ready()
	w.resize(2)
	if m := condition(w.failing("UndeclaredID"), "Failed").Message; !strings.Contains(m, `"a-2"`) {
		t.Errorf("message %q", m)
	}
	w.stop()
	w.start()
	w.settled("a")
	wantCalls(t, w, "one update", "POST a", "POST a-2", "DELETE a")
	w.delete()
	w.gone()
	if w.cloud.get("a-2") != nil || w.cloud.get("a") != nil {
		t.Errorf("the thing is left: %v", w.cloud.calls(false))
	}
}

// TestForgedID: who writes an id into the record of his object has nothing deleted by it.
func TestForgedID(t *testing.T) {
	t.Parallel()
	forge := func(w *operatorTest, id string) {
		w.t.Helper()
		own := w.get("a").Annotations[api.AnnotationExternal]
		before, rest, _ := strings.Cut(own, `,"inc"`)
		before, _, _ = strings.Cut(before, `,"given"`)
		w.stop()
		w.annotate(api.AnnotationExternal, before+`,"given":"`+id+`","inc"`+rest)
		w.age("a")
		w.start()
	}
	t.Run("what nobody has", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{}, func(o *options) { o.Limits = external.Limits{} })
		w.cloud.put("root", item{Size: 7, State: "ONLINE"})
		w.create()
		w.ready()
		forge(w, "root")
		w.failing("UndeclaredID")
		w.delete()
		held := w.await("to be held", func(o *thing.Thing) bool {
			return is(o, "Deleting", "True") && condition(o, "Failed").Reason == "UndeclaredID"
		})
		if m := condition(held, "Failed").Message; !strings.Contains(m, "carries no ownership mark") || !strings.Contains(m, api.AnnotationDeletion) {
			t.Errorf("message %q", m)
		}
		w.annotate(api.AnnotationDeletion, "orphan")
		w.gone()
		wantCalls(t, w, "the first create", "POST a")
	})
	t.Run("what a living object has", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, vendorIDs{}, func(o *options) { o.Unmarked = true })
		w.createAs("victim")
		w.awaitAs("victim", "an id", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "UndeclaredID" })
		id := strings.TrimPrefix(w.cloud.calls(false)[0], "POST ")
		w.create()
		w.failing("UndeclaredID")
		w.cloud.change(id, func(i *item) { i.Tags = nil }) // which this cloud could hold
		forge(w, id)
		w.settled("a")
		w.delete()
		w.gone()
		if w.cloud.get(id) == nil {
			t.Errorf("deleted: %v", w.cloud.calls(false))
		}
	})
}

// TestRecordTakenOff: the record is removed by hand while the process knows what it said.
func TestRecordTakenOff(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{}, func(o *options) { o.Unmarked = true })
	w.create()
	w.ready()
	w.cloud.change("a", func(i *item) { i.Tags = nil }) // which this cloud could hold
	t.Run("of an object that lives: it is put back", func(t *testing.T) {
		w.patch(`{"metadata":{"annotations":{"trimtab.dev/external":null}}}`)
		w.poke("observe")
		w.await("the record to be back", func(o *thing.Thing) bool { return o.Annotations[api.AnnotationExternal] != "" })
		w.ready()
	})
	t.Run("of an object that goes: its thing goes as well", func(t *testing.T) {
		w.cloud.faulty(always(http.MethodDelete, answer{code: http.StatusServiceUnavailable}))
		w.delete()
		w.await("to be deleting", func(o *thing.Thing) bool { return is(o, "Deleting", "True") })
		w.patch(`{"metadata":{"annotations":{"trimtab.dev/external":null}}}`)
		w.cloud.faulty(nil)
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is left behind")
		}
	})
}

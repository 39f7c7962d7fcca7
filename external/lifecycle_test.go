package external_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/internal/thing"
)

func wantWrites(t *testing.T, w *operatorTest, why string, want ...string) {
	t.Helper()
	// An answer is noted a moment after others can see what it did.
	w.until(func() bool { return len(w.writes("a")) >= len(want) })
	if diff := cmp.Diff(want, w.writes("a")); diff != "" {
		t.Errorf("writes: %s (-want +got):\n%s", why, diff)
	}
}

func wantCalls(t *testing.T, w *operatorTest, why string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.cloud.calls(false)); diff != "" {
		t.Errorf("calls: %s (-want +got):\n%s", why, diff)
	}
}

// TestLife follows one object of a synchronous API from its creation to its end.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	var before *thing.Thing
	w.cloud.with(func() {
		w.cloud.before = func(method, _ string) {
			if method == http.MethodPost {
				before = w.get("a")
			}
		}
	})
	w.create()
	obj := w.ready()

	t.Run("E1-21 a pass observes, calls and observes again, and says by which rows", func(t *testing.T) {
		want := []string{"D-00 observe", "D-13 create", "D-08 observe", "D-17 wait"}
		if diff := cmp.Diff(want, w.trace.rules("a")); diff != "" {
			t.Errorf("decisions (-want +got):\n%s", diff)
		}
	})
	t.Run("finalizer and marker come before the create", func(t *testing.T) {
		if before == nil || len(before.Finalizers) != 1 || before.Annotations["trimtab.dev/external"] == "" {
			t.Fatalf("at the time of the create the object was %+v", before)
		}
	})
	t.Run("E0-04 named after the kind and the uid", func(t *testing.T) {
		wantCalls(t, w, "one create", "POST thing-"+string(obj.UID))
	})
	t.Run("creation costs two writes", func(t *testing.T) {
		wantWrites(t, w, "finalizer with marker, status", "patch", "apply status")
	})
	t.Run("E0-01 status shows the thing", func(t *testing.T) {
		got := []string{obj.Status.External.ID, obj.Status.External.Status, obj.Status.Host, obj.Status.State}
		if diff := cmp.Diff([]string{name(obj), "ONLINE", name(obj) + ".example.org", "Succeeded"}, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
	})
	t.Run("E0-10 conditions say when, why and about what", func(t *testing.T) {
		for _, c := range obj.Status.Conditions {
			if c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != obj.Generation {
				t.Errorf("%+v", c)
			}
		}
		if condition(obj, "Ready").Message == "" {
			t.Error("Ready says nothing")
		}
	})
	t.Run("E0-13 that it was created stays", func(t *testing.T) {
		if !is(obj, "Creating", "False") {
			t.Errorf("conditions: %+v", obj.Status.Conditions)
		}
	})
	t.Run("a change costs one write and one call", func(t *testing.T) {
		w.requests.Reset()
		w.resize(2)
		w.ready()
		wantWrites(t, w, "status", "apply status")
		wantCalls(t, w, "one update", "POST "+name(obj), "PUT "+name(obj))
		if got := w.cloud.get(name(obj)).Size; got != 2 {
			t.Errorf("size %d, want 2", got)
		}
	})
	t.Run("the spec is never written", func(t *testing.T) {
		for _, r := range w.requests.Writes("things", w.namespace, "a") {
			var body map[string]any
			if err := json.Unmarshal(r.Body, &body); err == nil && body["spec"] != nil {
				t.Errorf("%s writes %s", r, r.Body)
			}
		}
	})
	t.Run("deletion costs one write, and then there is silence", func(t *testing.T) {
		w.requests.Reset()
		w.delete()
		w.gone()
		wantWrites(t, w, "finalizer", "patch")
		wantCalls(t, w, "one delete", "POST "+name(obj), "PUT "+name(obj), "DELETE "+name(obj))
		w.quiet(300 * time.Millisecond)
	})
}

// TestGoneIsOver: an object that is gone is neither observed nor reconciled again.
func TestGoneIsOver(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{}, func(o *options) { o.Loop.Name = "gone-is-over" })
	w.create()
	w.ready()
	w.delete()
	w.gone()
	t.Run("E0-55 no call, and no requeue", func(t *testing.T) {
		passes := func() float64 { return metric(t, "controller_runtime_reconcile_total", "gone-is-over") }
		before := passes()
		calls := len(w.cloud.calls(true))
		<-time.After(time.Second)            // a silence can only be listened to
		if now := passes(); now > before+2 { // the last one may still be counted, and one finds the object gone
			t.Errorf("%g passes after the end", now-before)
		}
		if now := len(w.cloud.calls(true)); now != calls {
			t.Errorf("%d calls after the end", now-calls)
		}
	})
}

// metric sums a metric of a controller.
func metric(t *testing.T, name, controller string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "controller" && l.GetValue() == controller {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

func TestStatusBelongsToTheOperator(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, things{})
	obj := w.create()
	t.Run("E0-15 no conditions before the first visit", func(t *testing.T) {
		if len(obj.Status.Conditions) != 0 {
			t.Errorf("conditions: %+v", obj.Status.Conditions)
		}
	})
	obj.Status.Conditions = []metav1.Condition{{Type: "Billed", Status: "True", Reason: "Paid", LastTransitionTime: metav1.Now()}}
	if err := w.admin.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	w.start()
	obj = w.ready()
	t.Run("E0-15 conditions of others stay", func(t *testing.T) {
		if !is(obj, "Billed", "True") {
			t.Errorf("conditions: %+v", obj.Status.Conditions)
		}
	})
	t.Run("E0-01 status is a subresource", func(t *testing.T) {
		changed := obj.DeepCopy()
		changed.Status.State = "Nonsense"
		if err := w.admin.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if got := w.get("a").Status.State; got != "Succeeded" {
			t.Errorf("state %q through the main resource", got)
		}
		changed = w.get("a")
		changed.Spec.Size = 99
		if err := w.admin.Status().Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if got := w.get("a").Spec.Size; got != 1 {
			t.Errorf("size %d through the status", got)
		}
	})
	t.Run("E0-12 one entry per type", func(t *testing.T) {
		twice := w.get("a")
		twice.Status.Conditions = append(twice.Status.Conditions, twice.Status.Conditions[0])
		if err := w.admin.Status().Update(t.Context(), twice); !apierrors.IsInvalid(err) {
			t.Errorf("two conditions of one type: %v, want 422", err)
		}
	})
}

// TestSlowAPI follows a thing whose API works on every call until the test says otherwise.
func TestSlowAPI(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.cloud.with(func() {
		w.cloud.slow = map[string]bool{http.MethodPost: true, http.MethodPut: true, http.MethodDelete: true}
	})
	w.create()
	obj := w.await("Creating=True", func(o *thing.Thing) bool { return is(o, "Creating", "True") })
	t.Run("E0-16 creating while the API creates", func(t *testing.T) {
		if w.cloud.count(http.MethodPost) != 1 || is(obj, "Ready", "True") || obj.Status.State != "Creating" {
			t.Errorf("state %s, conditions %+v", obj.Status.State, obj.Status.Conditions)
		}
	})
	t.Run("E0-82 no call while it works", func(t *testing.T) {
		w.resize(2)
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+3)
		wantCalls(t, w, "nothing but the create", "POST "+name(obj))
		w.resize(1)
		w.await("an observation of the old spec", func(o *thing.Thing) bool { return o.Status.ObservedGeneration == o.Generation })
	})
	t.Run("E0-17 E1-04 from creating to ready in one step", func(t *testing.T) {
		h := w.follow("a")
		w.cloud.settle("ONLINE")
		for _, o := range h.until("Ready=True", func(o *thing.Thing) bool { return is(o, "Ready", "True") }) {
			if is(o, "Creating", "True") == is(o, "Ready", "True") {
				t.Errorf("conditions %+v", o.Status.Conditions)
			}
		}
	})
	w.ready()
	t.Run("updating as soon as the spec is new", func(t *testing.T) {
		w.resize(3)
		got := w.await("Updating=True", func(o *thing.Thing) bool { return is(o, "Updating", "True") })
		if got.Status.State != "Updating" || !strings.Contains(condition(got, "Updating").Message, "spec.size 1 → 3") {
			t.Errorf("state %s, %+v", got.Status.State, condition(got, "Updating"))
		}
		w.cloud.settle("ONLINE")
		w.ready()
		if w.cloud.count(http.MethodPut) != 1 || w.cloud.get(name(obj)).Size != 3 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
	t.Run("E0-27 E0-38 updating is preempted by deletion", func(t *testing.T) {
		w.resize(4)
		w.await("Updating=True", func(o *thing.Thing) bool { return is(o, "Updating", "True") })
		w.delete()
		got := w.await("Deleting=True", func(o *thing.Thing) bool { return is(o, "Deleting", "True") })
		if !is(got, "Updating", "False") || !is(got, "Ready", "False") || got.Status.State != "Terminating" {
			t.Errorf("state %s, conditions %+v", got.Status.State, got.Status.Conditions)
		}
	})
	t.Run("E0-21 the object stays until the API reports absence", func(t *testing.T) {
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+3)
		if w.cloud.count(http.MethodDelete) != 1 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
		w.get("a")
	})
	t.Run("E0-23 a new spec is ignored from then on", func(t *testing.T) {
		puts := w.cloud.count(http.MethodPut)
		w.resize(5)
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+3)
		if now := w.cloud.count(http.MethodPut); now != puts {
			t.Errorf("%d updates, had %d", now, puts)
		}
	})
	w.cloud.settle("")
	w.gone()
}

func TestDeletionWhileCreating(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodPost: true} })
	obj := w.create()
	w.await("Creating=True", func(o *thing.Thing) bool { return is(o, "Creating", "True") })
	w.cloud.faulty(always(http.MethodDelete, answer{code: http.StatusConflict, body: "creating"}))
	w.delete()
	t.Run("E0-20 delete is not held up by a creation, and a conflict is no failure", func(t *testing.T) {
		w.awaitCalls(http.MethodDelete, 3)
		got := w.get("a")
		if !is(got, "Creating", "False") || !is(got, "Deleting", "True") || is(got, "Failed", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.cloud.faulty(nil)
		w.gone()
		if w.cloud.get(name(obj)) != nil {
			t.Error("the thing is still there")
		}
	})
}

func TestForeignFinalizer(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.create(func(o *thing.Thing) { o.Finalizers = []string{"example.org/hold"} })
	w.ready()
	w.delete()
	t.Run("E0-22 kept by another finalizer, which it names", func(t *testing.T) {
		got := w.await("a message about the other finalizer", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "Deleting").Message, "example.org/hold")
		})
		if !is(got, "Deleting", "True") || w.cloud.count(http.MethodDelete) != 1 {
			t.Errorf("conditions %+v, calls %v", got.Status.Conditions, w.cloud.calls(false))
		}
		w.patch(`{"metadata":{"finalizers":null}}`)
		w.gone()
		if n := w.cloud.count(http.MethodDelete); n != 1 {
			t.Errorf("%d deletes, want 1", n)
		}
	})
}

func TestDrift(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{}, drifting(100*time.Millisecond))
	obj := w.create()
	w.ready()
	t.Run("observed with no event at all", func(t *testing.T) {
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+3)
	})
	t.Run("in sync, an observation costs no write", func(t *testing.T) {
		w.requests.Reset()
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+5)
		if got := w.writes("a"); len(got) != 0 {
			t.Errorf("writes %v", got)
		}
	})
	t.Run("the API's own word is shown", func(t *testing.T) {
		w.cloud.settle("IDLE")
		w.await("the new word", func(o *thing.Thing) bool { return o.Status.External.Status == "IDLE" })
	})
	t.Run("E0-29 several words mean ready, others do not", func(t *testing.T) {
		if got := w.get("a"); !is(got, "Ready", "True") {
			t.Errorf("IDLE: %+v", condition(got, "Ready"))
		}
		w.cloud.settle("LIMPING")
		w.await("Ready=False", func(o *thing.Thing) bool { return is(o, "Ready", "False") && o.Status.State == "Verifying" })
		w.cloud.settle("ONLINE")
		w.ready()
	})
	t.Run("E0-25 E1-43 a change by others is undone once, and said", func(t *testing.T) {
		w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodPut: true} })
		w.cloud.change(name(obj), func(i *item) { i.Size = 77 })
		w.await("Updating=True", func(o *thing.Thing) bool { return is(o, "Updating", "True") })
		w.cloud.settle("ONLINE")
		w.ready()
		if n, size := w.cloud.count(http.MethodPut), w.cloud.get(name(obj)).Size; n != 1 || size != 1 {
			t.Errorf("%d updates, size %d", n, size)
		}
		w.awaitEvent("spec.size 77 → 1")
		if !slices.ContainsFunc(w.trace.drift(), func(d traceDrift) bool { return d.Path == "spec.size" && d.Have == "77" && d.Want == "1" }) {
			t.Errorf("traced %v", w.trace.drift())
		}
	})
	t.Run("D-14 a thing deleted by others is made again, and said", func(t *testing.T) {
		w.cloud.with(func() { delete(w.cloud.items, name(obj)) })
		w.awaitCalls(http.MethodPost, 2)
		w.awaitEvent("RecreatedAfterExternalDeletion")
		got := w.await("the second incarnation", func(o *thing.Thing) bool {
			return o.Status.External != nil && o.Status.External.Incarnation == 2 && is(o, "Ready", "True")
		})
		if tag := w.cloud.get(name(got)).Tags["trimtab-incarnation"]; tag != "2" {
			t.Errorf("marked as incarnation %q", tag)
		}
	})
	t.Run("D-24 a thing that vanishes is waited for", func(t *testing.T) {
		w.cloud.change(name(obj), func(i *item) { i.State = "DELETING" })
		w.await("Verifying", func(o *thing.Thing) bool { return o.Status.State == "Verifying" && is(o, "Ready", "False") })
		w.cloud.settle("")
		w.awaitCalls(http.MethodPost, 3)
		w.ready()
	})
}

func TestSpecChangedWhileDown(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	obj := w.create()
	w.ready()
	w.stop()
	w.resize(9)
	w.start()
	t.Run("E0-31 a spec changed while no operator ran is applied", func(t *testing.T) {
		w.ready()
		if got := w.cloud.get(name(obj)).Size; got != 9 {
			t.Errorf("size %d", got)
		}
	})
}

func TestRecreate(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	obj := w.create(func(o *thing.Thing) { o.Spec.Tier = "hdd" })
	w.ready()
	t.Run("D-21 a change that needs a new thing makes one", func(t *testing.T) {
		w.requests.Reset()
		w.patch(`{"spec":{"tier":"ssd"}}`)
		w.ready()
		wantCalls(t, w, "delete, then create", "POST "+name(obj), "DELETE "+name(obj), "POST "+name(obj))
		wantWrites(t, w, "marker of the second incarnation, status", "patch", "apply status")
		if got := w.cloud.get(name(obj)); got.Tier != "ssd" || got.Tags["trimtab-incarnation"] != "2" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a slow one is seen as Recreating", func(t *testing.T) {
		w.cloud.with(func() { w.cloud.slow = map[string]bool{http.MethodDelete: true} })
		w.patch(`{"spec":{"tier":"nvme"}}`)
		got := w.await("Recreating", func(o *thing.Thing) bool { return o.Status.State == "Recreating" })
		if !is(got, "Ready", "False") || !is(got, "Updating", "True") {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
		w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+3)
		if n := w.cloud.count(http.MethodDelete); n != 2 {
			t.Errorf("%d deletes, want 2", n)
		}
		w.cloud.settle("")
		w.ready()
	})
	t.Run("D-23 what cannot be changed is said, and Ready stays true", func(t *testing.T) {
		w.cloud.change(name(obj), func(i *item) { i.Version = "1" })
		w.patch(`{"spec":{"version":"2"}}`)
		got := w.await("Immutable", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "Immutable" })
		if !strings.Contains(condition(got, "Failed").Message, `spec.version "1" → "2"`) || !is(got, "Ready", "True") || got.Status.State != "Failed" {
			t.Errorf("state %s, conditions %+v", got.Status.State, got.Status.Conditions)
		}
	})
}

func TestWithoutUpdater(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, fixed{things{}})
	w.create()
	w.ready()
	t.Run("D-23 without Update, no change is possible in place", func(t *testing.T) {
		w.resize(2)
		got := w.failing("Immutable")
		if !strings.Contains(condition(got, "Failed").Message, "spec.size 1 → 2") || w.cloud.count(http.MethodPut) != 0 {
			t.Errorf("message %q, calls %v", condition(got, "Failed").Message, w.cloud.calls(false))
		}
	})
}

// TestNonConvergence: an API that says yes and does nothing.
func TestNonConvergence(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, things{})
	w.create()
	w.ready()
	w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusOK, body: "{}"}))
	w.resize(5)
	t.Run("D-20 three updates that change nothing are enough", func(t *testing.T) {
		got := w.await("NotConverging", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "NotConverging" })
		if !strings.Contains(condition(got, "Failed").Message, "spec.size 1 → 5") {
			t.Errorf("message %q", condition(got, "Failed").Message)
		}
		w.quiet(500 * time.Millisecond)
		if n := w.cloud.count(http.MethodPut); n != 3 {
			t.Errorf("%d updates, want 3", n)
		}
	})
	t.Run("D-20 a new spec is another try", func(t *testing.T) {
		w.cloud.faulty(nil)
		w.resize(6)
		w.ready()
	})
}

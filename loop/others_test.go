package loop_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestOthers: somebody else writes to the same object.
func TestOthers(t *testing.T) {
	t.Parallel()
	often := func(_ context.Context, r *run) loop.Outcome {
		r.Obj.Status.Note = ""
		return loop.After(50 * time.Millisecond)
	}
	t.Run("what others left in our part of status goes once, by one write", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(often)
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.mergeStatus(`{"status":{"note":"tampered"}}`)
		w.addCondition(metav1.Condition{Type: "Stalled", Status: "True", Reason: "Restored", LastTransitionTime: metav1.Now()})
		w.await("a", "to be clean again", func(p *probe.Probe) bool { return p.Status.Note == "" && condition(p, "Stalled") == nil && ready(p) })
		for len(a.ended) > 0 { // those that led here
			w.next(a)
		}
		w.next(a)
		before := len(w.writes())
		for range 10 {
			w.next(a)
		}
		if after := w.writes(); len(after) != before {
			t.Errorf("%d more writes in 10 passes: %v", len(after)-before, after[before:])
		}
	})
	t.Run("E0-15 a condition of others stays theirs to write", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Finalizers = []string{"example.org/hold"} })
		w.await("a", "to be Ready", ready)
		w.apply("True", nil)
		w.resize(2)
		w.await("a", "to be applied", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		w.apply("False", nil)
		w.delete()
		w.await("a", "to be held", func(p *probe.Probe) bool { return condition(p, "Deleting") != nil })
		w.apply("True", func(c *metav1.Condition) bool { return c.ObservedGeneration == 1 })
		w.patch("a", `{"metadata":{"finalizers":null}}`)
	})
	t.Run("002-11 a finalizer list that changed meanwhile loses only our entry", func(t *testing.T) {
		t.Parallel()
		const ours, theirs = "probes.probe.trimtab.dev/finalizer", "example.org/theirs"
		var w *controllerTest
		a := cleaner{author: newAuthor(nil), cleanup: func(context.Context, *run) loop.CleanupOutcome {
			w.patch("a", `{"metadata":{"finalizers":["`+ours+`","`+theirs+`"]}}`) //nolint:contextcheck // it takes the context of the test
			return loop.CleanedUp()
		}}
		w = newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Finalizers = []string{theirs, ours} })
		w.await("a", "to be Ready", ready)
		w.delete()
		got := w.await("a", "to lose our finalizer", func(p *probe.Probe) bool { return len(p.Finalizers) == 1 })
		if diff := cmp.Diff([]string{theirs}, got.Finalizers); diff != "" {
			t.Errorf("finalizers left (-want +got):\n%s", diff)
		}
		w.patch("a", `{"metadata":{"finalizers":null}}`)
	})
}

// TestFailuresOfWrites: the API refuses what a pass wants to write.
func TestFailuresOfWrites(t *testing.T) {
	t.Parallel()
	t.Run("a conflict of the author's own is a failure like any other", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			return loop.Fail(apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "child", errors.New("kubectl owns .data.x")))
		})
		w := newControllerTest(t, a, options{Retry: linear(0)})
		w.create("a")
		got := w.await("a", "to tell", func(p *probe.Probe) bool { return p.Status.State == "Failed" })
		if m := condition(got, "Ready").Message; !strings.Contains(m, "kubectl owns") {
			t.Errorf("message %q", m)
		}
		w.next(a)
		if second := w.next(a); second.Attempt != 1 {
			t.Errorf("attempt %d, want 1", second.Attempt)
		}
	})
	t.Run("a pass that stops is repeated until its status is written", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(context.Context, *run) loop.Outcome { return loop.Terminal("Refused", errBroken) })
		w := newControllerTest(t, a, options{}, looptest.Inject(looptest.Fault{On: "apply probes/status", Nth: 1, Code: http.StatusInternalServerError}).Wrap)
		w.create("a")
		w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
	})
	t.Run("a reason that the API refuses is mended, a long message is clipped, and both have an event", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(context.Context, *run) loop.Outcome {
			return loop.Terminal("not found", errors.New(strings.Repeat("x", 3000)))
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		got := w.await("a", "to be Stalled", func(p *probe.Probe) bool { return condition(p, "Stalled") != nil })
		if r := condition(got, "Ready").Reason; r != "NotFound" {
			t.Errorf("reason %q", r)
		}
		w.awaitEvent("a", "NotFound")
	})
}

// mergeStatus writes into status as a stranger.
func (w *controllerTest) mergeStatus(body string) {
	w.t.Helper()
	if err := w.admin.Status().Patch(w.t.Context(), w.get("a"), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner("stranger")); err != nil {
		w.t.Fatal(err)
	}
}

// apply sets the condition Billing as the controller that owns it does, without force, after
// the one on the object was checked by ok.
func (w *controllerTest) apply(is string, ok func(*metav1.Condition) bool) {
	w.t.Helper()
	if c := condition(w.get("a"), "Billing"); ok != nil && !ok(c) {
		w.t.Errorf("the condition was changed: %+v", c)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Billing", "status": is, "reason": "Because", "message": "", "observedGeneration": int64(1),
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}}
	u.SetGroupVersionKind(probe.GroupVersion.WithKind("Probe"))
	u.SetNamespace(w.namespace)
	u.SetName("a")
	if err := w.admin.Status().Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("billing")); err != nil {
		w.t.Errorf("the owner of the condition can no longer write it: %v", err)
	}
}

// awaitEvent waits for an event about a Probe.
func (w *controllerTest) awaitEvent(name, reason string) eventsv1.Event {
	w.t.Helper()
	c := testenv.Client(w.t, w.cfg, eventsv1.AddToScheme)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 400 {
		list := &eventsv1.EventList{}
		if err := c.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Reason == reason && e.Regarding.Name == name {
				return e
			}
		}
		<-tick.C
	}
	w.t.Fatalf("no event with reason %s", reason)
	return eventsv1.Event{}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

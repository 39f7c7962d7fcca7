package external_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// change edits an object as a user would.
func (w *operatorTest) change(name string, f func(*thing.Thing)) {
	w.t.Helper()
	obj := w.get(name)
	before := obj.DeepCopy()
	f(obj)
	if err := w.admin.Patch(w.t.Context(), obj, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

// settled waits until the object has been observed as it is now, and rests.
func (w *operatorTest) settled(name string) *thing.Thing {
	w.t.Helper()
	token := time.Now().String()
	w.change(name, annotated(api.AnnotationReconcile, token))
	return w.awaitAs(name, "a pass over what is there now", func(o *thing.Thing) bool {
		return o.Status.HandledReconcile == token && o.Status.ObservedGeneration == o.Generation
	})
}

func (w *operatorTest) remove(name string) {
	w.t.Helper()
	if err := w.admin.Delete(w.t.Context(), w.get(name)); err != nil {
		w.t.Fatal(err)
	}
}

// called reports whether the cloud had a call.
func (w *operatorTest) called(method, name string) bool {
	return slices.Contains(w.cloud.calls(false), method+" "+name)
}

// TestPermissions goes through all sets of letters and all that they allow.
func TestPermissions(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	for _, letters := range []string{"none", "C", "U", "D", "CU", "CD", "UD", "CUD"} {
		c, u, d := strings.Contains(letters, "C"), strings.Contains(letters, "U"), strings.Contains(letters, "D")
		if letters == "none" {
			c, u, d = false, false, false
		}
		kept, updated, remade := "kept-"+strings.ToLower(letters), "updated-"+strings.ToLower(letters), "remade-"+strings.ToLower(letters)
		t.Run("E1-50 create with "+letters, func(t *testing.T) {
			w.createAs(kept, annotated(api.AnnotationAccess, letters))
			got := w.settled(kept)
			if made := w.cloud.get(kept) != nil; made != c {
				t.Errorf("made: %t, want %t; %+v", made, c, got.Status)
			}
		})
		t.Run("E1-50 update with "+letters, func(t *testing.T) {
			w.createAs(updated)
			w.settled(updated)
			w.change(updated, func(o *thing.Thing) { annotated(api.AnnotationAccess, letters)(o); o.Spec.Size = 9 })
			got := w.settled(updated)
			if done := w.called(http.MethodPut, updated); done != u {
				t.Errorf("updated: %t, want %t; %+v", done, u, got.Status)
			}
		})
		t.Run("E1-50 delete with "+letters, func(t *testing.T) {
			w.remove(updated)
			w.until(func() bool { return apiGone(w, updated) })
			if gone := w.cloud.get(updated) == nil; gone != d {
				t.Errorf("deleted: %t, want %t", gone, d)
			}
		})
		t.Run("E1-50 E1-56 recreate with "+letters, func(t *testing.T) {
			w.createAs(remade, func(o *thing.Thing) { o.Spec.Tier = "hdd" })
			w.settled(remade)
			w.change(remade, func(o *thing.Thing) { annotated(api.AnnotationAccess, letters)(o); o.Spec.Tier = "ssd" })
			got := w.settled(remade)
			want := "hdd"
			if c && d {
				want = "ssd"
			}
			if i := w.cloud.get(remade); i == nil || i.Tier != want {
				t.Errorf("%+v, want tier %s; %+v", i, want, got.Status)
			}
			if want == "hdd" && !strings.HasPrefix(condition(got, "Failed").Message, "permission to delete or recreate external resource is not set") {
				t.Errorf("message %q", condition(got, "Failed").Message)
			}
		})
	}
}

func apiGone(w *operatorTest, name string) bool {
	obj := &thing.Thing{}
	return w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj) != nil
}

func TestPermissionMessages(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	t.Run("E1-53 missing without C", func(t *testing.T) {
		w.createAs("a", annotated(api.AnnotationAccess, "UD"))
		got := w.failing("CreateNotPermitted")
		message := condition(got, "Failed").Message
		if !strings.HasPrefix(message, "permission to create external resource is not set") || w.cloud.count(http.MethodPost) != 0 {
			t.Errorf("message %q, calls %v", message, w.cloud.calls(false))
		}
		if want := `set annotation trimtab.dev/access-permissions to "cud" to allow it`; !strings.HasSuffix(message, want) {
			t.Errorf("message %q, want %s at its end", message, want)
		}
	})
	t.Run("E1-51 absent is CUD", func(t *testing.T) {
		w.patch(`{"metadata":{"annotations":{"trimtab.dev/access-permissions":null}}}`)
		w.ready()
	})
	t.Run("E1-57 read-only asserts, in sync", func(t *testing.T) {
		w.annotate(api.AnnotationAccess, "read-only")
		got := w.settled("a")
		if got.Status.State != "Succeeded" || w.cloud.count(http.MethodPost) != 1 {
			t.Errorf("state %s", got.Status.State)
		}
	})
	t.Run("E1-54 E1-57 out of sync without U", func(t *testing.T) {
		w.resize(4)
		got := w.failing("UpdateNotPermitted")
		message := condition(got, "Failed").Message
		if !strings.HasPrefix(message, "permission to update external resource is not set") || !strings.Contains(message, "spec.size 1 → 4") {
			t.Errorf("message %q", message)
		}
		if !is(got, "Ready", "True") || w.cloud.count(http.MethodPut) != 0 {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("E1-52 nonsense is read-only, and said", func(t *testing.T) {
		w.annotate(api.AnnotationAccess, "no-delete")
		got := w.await("PolicyInvalid", func(o *thing.Thing) bool { return is(o, api.ConditionPolicyInvalid, "True") })
		if !strings.Contains(condition(got, api.ConditionPolicyInvalid).Message, `"no-delete"`) {
			t.Errorf("message %q", condition(got, api.ConditionPolicyInvalid).Message)
		}
		if w.cloud.count(http.MethodPut) != 0 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
	t.Run("E1-52 corrected, the condition goes", func(t *testing.T) {
		w.annotate(api.AnnotationAccess, "CU")
		if got := w.ready(); condition(got, api.ConditionPolicyInvalid).Type != "" {
			t.Errorf("conditions %+v", got.Status.Conditions)
		}
	})
	t.Run("E1-55 deletion without D leaves the thing alone", func(t *testing.T) {
		before := *w.cloud.get("a")
		w.delete()
		w.gone()
		if after := w.cloud.get("a"); after == nil || after.Tags["trimtab-uid"] != before.Tags["trimtab-uid"] || w.cloud.count(http.MethodDelete) != 0 {
			t.Errorf("%+v, was %+v", after, before)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	t.Run("D-01 paused, drift is shown and nothing is changed", func(t *testing.T) {
		w.annotate(api.AnnotationPaused, "true")
		w.await("Paused=True", func(o *thing.Thing) bool { return is(o, "Paused", "True") })
		w.resize(5)
		got := w.await("the difference", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "Paused").Message, "spec.size 1 → 5")
		})
		if !is(got, "Ready", "True") || w.cloud.count(http.MethodPut) != 0 || got.Status.AppliedGeneration == got.Generation {
			t.Errorf("%+v, calls %v", got.Status, w.cloud.calls(false))
		}
	})
	t.Run("D-01 a pause can end by itself", func(t *testing.T) {
		w.annotate(api.AnnotationPaused, time.Now().Add(1500*time.Millisecond).UTC().Format(time.RFC3339))
		w.await("the end of the pause", func(o *thing.Thing) bool {
			return condition(o, "Paused").Type == "" && o.Status.AppliedGeneration == o.Generation
		})
		if size := w.cloud.get("a").Size; size != 5 {
			t.Errorf("size %d", size)
		}
	})
	t.Run("D-01 all holds deletion", func(t *testing.T) {
		w.annotate(api.AnnotationPaused, "all")
		w.delete()
		w.await("Deleting and Paused", func(o *thing.Thing) bool { return is(o, "Deleting", "True") && is(o, "Paused", "True") })
		if w.cloud.count(http.MethodDelete) != 0 {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
		w.annotate(api.AnnotationPaused, "true")
		w.gone()
		if w.cloud.get("a") != nil {
			t.Error("the thing is still there")
		}
	})
}

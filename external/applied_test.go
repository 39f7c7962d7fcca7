package external_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestReadyOfAnEarlierSpec: a thing works as it was asked for once, not as it is asked for
// now. Ready says so by its generation, which kubectl wait compares.
func TestReadyOfAnEarlierSpec(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why    string
		spoil  func(*operatorTest)
		seen   func(*thing.Thing) bool
		repair func(*operatorTest)
	}{
		"the update fails": {
			why: "its effect is not known",
			spoil: func(w *operatorTest) {
				w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusInternalServerError}))
			},
			seen: func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "UpdateFailed" },
		},
		"the update is refused": {
			why: "it is as it was",
			spoil: func(w *operatorTest) {
				w.cloud.faulty(always(http.MethodPut, answer{code: http.StatusUnprocessableEntity}))
			},
			seen:   func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "UpdateInvalid" },
			repair: func(w *operatorTest) { w.resize(3) },
		},
		"no observation succeeds": {
			why: "the last observation was before the change",
			spoil: func(w *operatorTest) {
				w.cloud.faulty(always(http.MethodGet, answer{code: http.StatusInternalServerError}))
			},
			seen: func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "ObserveFailed" },
		},
		"changes are paused": {
			why:    "it is observed and left",
			spoil:  func(w *operatorTest) { w.annotate(api.AnnotationPaused, "true") },
			seen:   func(o *thing.Thing) bool { return is(o, "Paused", "True") },
			repair: func(w *operatorTest) { w.annotate(api.AnnotationPaused, "false") },
		},
		"updates are not permitted": {
			why:    "it is observed and left",
			spoil:  func(w *operatorTest) { w.annotate(api.AnnotationAccess, "CD") },
			seen:   func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "UpdateNotPermitted" },
			repair: func(w *operatorTest) { w.annotate(api.AnnotationAccess, "CUD") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newOperatorTest(t, things{})
			w.create()
			w.ready()
			tc.spoil(w)
			w.resize(2)
			got := w.await("it is known that "+name, func(o *thing.Thing) bool {
				return o.Status.ObservedGeneration == 2 && tc.seen(o)
			})
			if ready := condition(got, "Ready"); ready.Status != "True" || ready.ObservedGeneration != 1 {
				t.Errorf("%s: Ready is %s for generation %d; want True for 1", tc.why, ready.Status, ready.ObservedGeneration)
			}
			w.cloud.faulty(nil)
			if tc.repair != nil {
				tc.repair(w)
			}
			w.ready()
		})
	}
	t.Run("no spec was ever applied", func(t *testing.T) {
		w := newOperatorTest(t, named{})
		w.cloud.put("a", item{Size: 7, State: "ONLINE"})
		w.create(annotated(api.AnnotationAdoption, "always"), annotated(api.AnnotationAccess, "none"))
		if got := w.failing("UpdateNotPermitted"); !is(got, "Ready", "False") {
			t.Errorf("Ready is %s though the thing never was as it was asked for", condition(got, "Ready").Status)
		}
		w.resize(7)
		w.ready()
	})
	t.Run("it does not go back", func(t *testing.T) {
		w := newOperatorTest(t, things{})
		w.create()
		w.ready()
		w.annotate(api.AnnotationPaused, "true")
		for _, step := range []struct{ size, want int64 }{{2, 1}, {1, 3}, {7, 3}} {
			w.resize(int(step.size))
			got := w.await("it is observed", func(o *thing.Thing) bool {
				return o.Status.ObservedGeneration == o.Generation && is(o, "Paused", "True")
			})
			if ready := condition(got, "Ready"); ready.Status != "True" || ready.ObservedGeneration != step.want {
				t.Errorf("size %d, generation %d: Ready is %s for generation %d; want True for %d",
					step.size, got.Generation, ready.Status, ready.ObservedGeneration, step.want)
			}
		}
	})
	t.Run("a status that was restored is not believed", func(t *testing.T) {
		w := newOperatorTest(t, things{})
		w.create()
		w.ready()
		w.annotate(api.AnnotationPaused, "true")
		w.resize(2)
		w.await("it is paused", func(o *thing.Thing) bool { return is(o, "Paused", "True") && o.Status.ObservedGeneration == 2 })
		w.stop()
		w.restore(`[{"type":"Ready","status":"True","reason":"R","message":"","observedGeneration":99,"lastTransitionTime":"2026-01-02T12:00:00Z"}]`)
		w.start()
		w.await("Ready=False", func(o *thing.Thing) bool { return is(o, "Ready", "False") })
	})
}

// restore writes conditions as somebody who restores a backup does.
func (w *operatorTest) restore(conditions string) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":`+conditions+`}}`))
	if err := w.admin.Status().Patch(w.t.Context(), w.get("a"), patch); err != nil {
		w.t.Fatal(err)
	}
}

package external_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// defaulted are things whose API chooses what the spec leaves open.
type defaulted struct{ named }

func (defaulted) LateInit(r external.LateInitRequest[*thing.Thing, item]) {
	if r.Object.Spec.Tier == "" {
		r.Object.Spec.Tier = r.Have.Tier
	}
	if r.Object.Spec.Version == "" {
		r.Object.Spec.Version = r.Have.Version
	}
}

// greedy are things whose driver changes what the user has set.
type greedy struct{ named }

func (greedy) LateInit(r external.LateInitRequest[*thing.Thing, item]) { r.Object.Spec.Size = 7 }

// verbose are things whose API chooses more than an object can hold.
type verbose struct{ named }

func (verbose) LateInit(r external.LateInitRequest[*thing.Thing, item]) {
	r.Object.Spec.Tier = strings.Repeat("x", 4<<20)
}

// chooses lets the cloud choose a tier at once, and a version with the first update.
func (c *cloud) chooses() {
	c.with(func() {
		c.before = func(method, name string) {
			c.with(func() {
				i := c.items[name]
				if method == "GET" && i != nil && i.Tier == "" {
					i.Tier = "standard"
				}
				if method == "GET" && i != nil && i.Size > 1 && i.Version == "" {
					i.Version = "v2"
				}
			})
		}
	})
}

// specWrites are the patches of the object "a" that have a spec.
func (w *operatorTest) specWrites() []string {
	var out []string
	for _, r := range w.requests.Writes("things", w.namespace, "a") {
		if r.Subresource == "" && strings.Contains(string(r.Body), `"spec"`) {
			_, spec, _ := strings.Cut(string(r.Body), `"spec":`)
			out = append(out, strings.TrimSuffix(spec, "}"))
		}
	}
	return out
}

func TestLateInit(t *testing.T) {
	t.Parallel()
	t.Run("E0-67 E0-85 unset fields get what the API chose, once, if the user asks for it", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, defaulted{})
		w.cloud.chooses()
		w.create()
		w.ready()
		w.quiet(100 * time.Millisecond)
		if got := w.get("a"); got.Spec.Tier != "" || len(w.specWrites()) > 0 {
			t.Errorf("nobody asked for it: spec %+v, writes %v", got.Spec, w.specWrites())
		}
		w.annotate(api.AnnotationLateInit, "true")
		w.await("the tier", func(o *thing.Thing) bool { return o.Spec.Tier == "standard" })
		w.ready()
		w.resize(2)
		w.await("the version, after the update", func(o *thing.Thing) bool { return o.Spec.Version == "v2" })
		if got := w.ready(); got.Annotations[api.AnnotationLateInitialized] != "spec.tier,spec.version" || got.Spec.Size != 2 {
			t.Errorf("annotations %v, spec %+v", got.Annotations, got.Spec)
		}
		w.stop()
		w.patch(`{"spec":{"tier":null}}`)
		w.start()
		w.ready()
		w.poke("again")
		w.await("to look again", func(o *thing.Thing) bool { return o.Status.HandledReconcile == "again" })
		if got := w.get("a"); got.Spec.Tier != "" {
			t.Errorf("filled twice: %+v", got.Spec)
		}
		if diff := cmp.Diff([]string{`{"tier":"standard"}`, `{"version":"v2"}`}, w.specWrites()); diff != "" {
			t.Errorf("writes of the spec (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"POST a", "PUT a"}, w.cloud.calls(false)); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		w.awaitEvent("completed the spec with what the API has chosen for")
	})
	t.Run("in one pass with the create", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, defaulted{})
		w.cloud.chooses()
		w.create(annotated(api.AnnotationLateInit, "true"))
		if got := w.ready(); got.Spec.Tier != "standard" || got.Generation != 2 {
			t.Errorf("generation %d, spec %+v", got.Generation, got.Spec)
		}
		wantWrites(t, w, "finalizer with the marker, spec, status", "patch", "patch", "apply status")
	})
	t.Run("what is set stays", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, greedy{})
		w.create(annotated(api.AnnotationLateInit, "true"))
		got := w.await("to tell the author", func(o *thing.Thing) bool {
			return strings.Contains(o.Status.Message, "the spec is not completed: LateInit changed spec.size, which the user has set; this is a bug in external_test.greedy")
		})
		if got.Spec.Size != 1 || !is(got, "Ready", "True") || len(w.specWrites()) > 0 {
			t.Errorf("spec %+v, conditions %+v", got.Spec, got.Status.Conditions)
		}
	})
	t.Run("what is set to nothing stays", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, defaulted{})
		w.cloud.chooses()
		w.create()
		w.ready()
		w.patch(`{"spec":{"tier":""},"metadata":{"annotations":{"` + api.AnnotationLateInit + `":"true"}}}`)
		w.resize(2)
		w.await("the version", func(o *thing.Thing) bool { return o.Spec.Version == "v2" })
		w.ready()
		if diff := cmp.Diff([]string{`{"version":"v2"}`}, w.specWrites()); diff != "" {
			t.Errorf("writes of the spec (-want +got):\n%s", diff)
		}
	})
	t.Run("what the API server refuses keeps nothing from being Ready", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, verbose{})
		w.create(annotated(api.AnnotationLateInit, "true"))
		got := w.ready()
		if !strings.Contains(got.Status.Message, "the spec is not completed: complete spec.tier: ") {
			t.Errorf("message %q", got.Status.Message)
		}
		w.quiet(200 * time.Millisecond)
	})
	t.Run("a word that means nothing", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, defaulted{})
		w.create(annotated(api.AnnotationLateInit, "please"))
		w.await("to say so", func(o *thing.Thing) bool {
			return is(o, api.ConditionPolicyInvalid, "True") && strings.Contains(o.Status.Message, `"please" is not "true" or "false"; the spec is not completed until it is corrected`)
		})
	})
}

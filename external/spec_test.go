package external_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestSpecIsTheUsers goes through a life with all that can happen to a thing.
func TestSpecIsTheUsers(t *testing.T) {
	t.Parallel()
	t.Run("E1-01 the operator never writes a spec", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, named{})
		h := w.follow("a")
		want := w.eventfulLife()
		var specs []thing.Spec
		for _, o := range h.untilGone() {
			if n := len(specs); n == 0 || specs[n-1] != o.Spec {
				specs = append(specs, o.Spec)
			}
			for _, f := range o.ManagedFields {
				if strings.HasPrefix(f.Manager, "trimtab-") && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) {
					t.Errorf("the server holds %s for an owner of the spec: %s", f.Manager, f.FieldsV1.GetRawString())
				}
			}
			// The mark of a deletion is one, too.
			if specs := int64(len(specs)); o.DeletionTimestamp.IsZero() && o.Generation != specs {
				t.Errorf("generation %d after %d specs of the user", o.Generation, specs)
			}
		}
		if diff := cmp.Diff(want, specs); diff != "" {
			t.Errorf("specs (-what the user wrote +what there was):\n%s", diff)
		}
		w.wantNoSpecWritten()
	})
}

// eventfulLife makes, changes, damages, recreates, pauses and deletes a thing, and answers what
// the user wrote into the spec.
func (w *operatorTest) eventfulLife() []thing.Spec {
	w.t.Helper()
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusInternalServerError}))
	w.create(func(o *thing.Thing) { o.Spec.Tier = "hdd" })
	w.failing("CreateFailed")
	w.cloud.faulty(nil)
	w.ready()
	w.resize(2)
	w.ready()
	w.cloud.change("a", func(i *item) { i.Size = 77 })
	w.settled("a")
	w.patch(`{"spec":{"tier":"ssd"}}`)
	w.ready()
	w.annotate(api.AnnotationPaused, "true")
	w.settled("a")
	w.annotate(api.AnnotationPaused, "false")
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.settled("a")
	w.stop()
	w.start()
	w.settled("a")
	w.delete()
	w.gone()
	return []thing.Spec{{Size: 1, Tier: "hdd"}, {Size: 2, Tier: "hdd"}, {Size: 2, Tier: "ssd"}}
}

// wantNoSpecWritten looks through all that the operator asked of the server for the object "a".
func (w *operatorTest) wantNoSpecWritten() {
	w.t.Helper()
	writes := w.requests.Writes("things", w.namespace, "a")
	if len(writes) == 0 {
		w.t.Error("no writes at all were seen")
	}
	for _, r := range writes {
		var fields map[string]any
		var operations []struct{ Path string }
		switch {
		case r.Verb != "patch" && r.Verb != "apply":
			w.t.Errorf("%s sends whole objects", r)
		case json.Unmarshal(r.Body, &fields) == nil:
			if _, has := fields["spec"]; has {
				w.t.Errorf("%s writes %s", r, r.Body)
			}
		case json.Unmarshal(r.Body, &operations) == nil:
			for _, o := range operations {
				if strings.HasPrefix(o.Path, "/spec") {
					w.t.Errorf("%s writes %s", r, r.Body)
				}
			}
		default:
			w.t.Errorf("%s cannot be read: %s", r, r.Body)
		}
	}
}

// limited are things whose names may have 20 of the characters [a-z0-9]. Who names one himself
// is reported if that cannot be.
type limited struct{ things }

var fits = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

func (limited) ExternalName(t *thing.Thing) (string, error) {
	switch {
	case t.Spec.Name == "":
		return shortName(t.UID), nil
	case !fits.MatchString(t.Spec.Name):
		return "", fmt.Errorf("spec.name %q: at most 20 of a-z and 0-9 are allowed; choose another name", t.Spec.Name)
	}
	return t.Spec.Name, nil
}

// shortName carries 100 bits of a hash.
func shortName(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:20]
}

// Observe reads under the name, as an API does that allows no other.
func (limited) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	if !fits.MatchString(r.ID) {
		return observation{}, external.Invalid(fmt.Errorf("no name: %q", r.ID))
	}
	return things{}.Observe(ctx, r)
}

// TestLimitedNames: the API limits length and characters of names.
func TestLimitedNames(t *testing.T) {
	t.Parallel()
	t.Run("E0-05 names within limits, the same every time, and a user's own refused without a call", func(t *testing.T) {
		t.Parallel()
		seen := make(map[string]bool, 100_000)
		for i := range 100_000 {
			name := shortName(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*7919)))
			if seen[name] || !fits.MatchString(name) {
				t.Fatalf("the name %q of UID %d is taken or not allowed", name, i)
			}
			seen[name] = true
		}
		w := newOperatorTest(t, limited{})
		obj := w.create()
		w.ready()
		w.stop()
		w.patch(stripped)
		w.start()
		w.settled("a")
		wantCalls(t, w, "one name, in a new process without a record too", "POST "+shortName(obj.UID))

		w.createAs("b", func(o *thing.Thing) { o.Spec.Name = "Much too long to be a name" })
		got := w.awaitAs("b", "the name to be refused", func(o *thing.Thing) bool { return is(o, "Stalled", "True") && is(o, "Failed", "True") })
		w.settled("b")
		for _, call := range w.cloud.calls(true) {
			if !strings.HasSuffix(call, " "+shortName(obj.UID)) {
				t.Errorf("call %s, conditions %+v", call, got.Status.Conditions)
			}
		}
	})
}

package engine

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	thingv1 "github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
)

// TestWaits checks that the time for which an observation may be stale starts with what the object
// waits for now.
func TestWaits(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	unready := []loop.Dep{{Kind: "Thing", Name: "b", Why: "is not ready"}}
	gone := []loop.Dep{{Kind: "Thing", Name: "b", Why: "does not exist"}}
	var k track
	for i, step := range []struct {
		waiting []loop.Dep
		want    time.Duration
	}{{unready, 0}, {unready, time.Minute}, {gone, 0}, {gone, time.Minute}, {nil, 0}, {unready, 0}} {
		now := noon.Add(time.Duration(i) * time.Minute)
		k.waits(step.waiting, now)
		var f decide.Facts
		k.facts(&f, now)
		if f.SinceUnready != step.want {
			t.Errorf("step %d: it has waited for %v for %s; want %s", i, step.waiting, f.SinceUnready, step.want)
		}
	}
}

// TestChangedForTheAuthor checks that every update counts for a Ready function, and as long as no
// object was read and the kind's name is unknown.
func TestChangedForTheAuthor(t *testing.T) {
	claim, busy := &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	k := dependencyKind{to: claim, facts: &kindFacts{}}
	if !k.changed(claim, busy) {
		t.Error("an update is lost before the kind is known")
	}
	k.facts.learn(Dependency{To: claim}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if k.changed(claim, busy) {
		t.Error("a busy dependency wakes those for which it is there")
	}
	k.facts.learn(Dependency{To: claim, Ready: func(client.Object) (bool, string) { return true, "" }}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if !k.changed(claim, busy) {
		t.Error("an update is lost that the author may judge by")
	}
}

// visit returns the parts of a pass that a call needs.
func visit() *pass {
	e := &Engine{}
	p := &pass{}
	p.managed = managed{e: e, obj: &thingv1.Thing{}, track: &track{}}
	p.shared = e.clients.of(objectKey{}, "")
	return p
}

// TestCallsAtTheEnd covers calls during which the process stops.
func TestCallsAtTheEnd(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	tests := map[string]struct {
		why   string
		a     decide.Action
		ended bool
	}{
		"create":  {"its answer is worth more than the seconds", decide.ActionCreate, false},
		"update":  {"", decide.ActionUpdate, false},
		"delete":  {"", decide.ActionDelete, false},
		"unmark":  {"", decide.ActionUnmark, false},
		"observe": {"an observation can be repeated", decide.ActionObserve, true},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			visit().ask(stopped, test.a, func(ctx context.Context, _ Object) (string, error) {
				if ended := ctx.Err() != nil; ended != test.ended {
					t.Errorf("%s: the call is cut short: %t, want %t", test.why, ended, test.ended)
				}
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("the call has no deadline")
				}
				return "ok", nil
			})
		})
	}
}

// TestMetadataLostInOneProcess checks that a prepared marker does not undo what this process did
// under a record that the object has lost.
func TestMetadataLostInOneProcess(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	first := record.Record{ID: "orders", Incarnation: 1, UID: "u1", Create: record.Marker{By: "pod"}}
	second := first
	first.Create.At, second.Create.At = now, now.Add(time.Second)
	var tr track
	tr.prepared = first.Create
	tr.read(first, now, time.Hour)
	if tr.creation != decide.CreationUnrecorded {
		t.Fatalf("creation %d of a first record, want %d", tr.creation, decide.CreationUnrecorded)
	}
	tr.sawNothing()
	tr.createAnswered(false, decide.ClassUnknown, now)
	tr.prepared = second.Create
	if !tr.read(second, now.Add(time.Second), time.Hour) {
		t.Fatal("the prepared record is taken for an old one")
	}
	tr.sawNothing() // a stale observation
	if tr.creation != decide.CreationCalled || !tr.called.Equal(now) {
		t.Errorf("creation %d at %s; it was called at %s", tr.creation, tr.called, now)
	}
}

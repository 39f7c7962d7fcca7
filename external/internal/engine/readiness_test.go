package engine

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	thingv1 "github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
)

// TestWaits: the clock of a look that may be behind begins with what the object waits for now.
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

// dependency makes an object that is Ready in every way, and changes it.
func dependency(change ...func(*thingv1.Thing)) *thingv1.Thing {
	o := &thingv1.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "u1", Generation: 2}}
	o.Status.ObservedGeneration = 2
	o.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	o.Status.External = &api.ExternalObservation{ID: "b", Incarnation: 1}
	for _, f := range change {
		f(o)
	}
	return o
}

func TestIsReady(t *testing.T) {
	tests := map[string]struct {
		why    string
		change func(*thingv1.Thing)
		want   bool
	}{
		"ready":                    {"", func(*thingv1.Thing) {}, true},
		"not ready":                {"", func(o *thingv1.Thing) { o.Status.Conditions[0].Status = metav1.ConditionFalse }, false},
		"nothing said":             {"", func(o *thingv1.Thing) { o.Status.Conditions = nil }, false},
		"before the spec changed":  {"status is about an older spec", func(o *thingv1.Thing) { o.Generation = 3 }, false},
		"the condition is older":   {"the present spec cannot be applied, but the thing works", func(o *thingv1.Thing) { o.Status.Conditions[0].ObservedGeneration = 1 }, true},
		"the condition is newer":   {"a status that was restored", func(o *thingv1.Thing) { o.Status.Conditions[0].ObservedGeneration = 3 }, false},
		"the status is older":      {"the condition is of now, its status is not", func(o *thingv1.Thing) { o.Status.ObservedGeneration = 1 }, false},
		"another condition counts": {"only Ready does", func(o *thingv1.Thing) { o.Status.Conditions[0].Type = "Billed" }, false},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := shortOf(dependency(test.change), schema.GroupVersionKind{}) == ""; got != test.want {
				t.Errorf("%s: ready %t, want %t", test.why, got, test.want)
			}
		})
	}
}

// TestIsReadyOfOthers: a condition that somebody else's controller left behind is out of date.
func TestIsReadyOfOthers(t *testing.T) {
	for generation, want := range map[int64]bool{1: false, 2: true} {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dependency(func(o *thingv1.Thing) {
			o.Status.Conditions[0].ObservedGeneration = generation
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := shortOf(&unstructured.Unstructured{Object: u}, schema.GroupVersionKind{}) == ""; got != want {
			t.Errorf("ready %t for generation %d of 2; want %t", got, generation, want)
		}
	}
}

// TestShortOf: kstatus takes what says nothing for current. That is right for what can say
// nothing, and for an object that Kubernetes itself looks after.
func TestShortOf(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	with := func(status any) map[string]any { return map[string]any{"status": status} }
	for name, test := range map[string]struct {
		kind   schema.GroupVersionKind
		fields map[string]any
		want   string
	}{
		"its controller has not come yet": {widget, map[string]any{}, "has no status yet"},
		"an empty status":                 {widget, with(map[string]any{}), "has no status yet"},
		"a status of its own":             {widget, with(map[string]any{"phase": "Fine"}), ""},
		"reconciling": {widget, with(map[string]any{"conditions": []any{
			map[string]any{"type": "Reconciling", "status": "True"},
		}}), "is not ready"},
		"stalled": {widget, with(map[string]any{"conditions": []any{
			map[string]any{"type": "Stalled", "status": "True"},
		}}), "has failed"},
		"no status that kstatus can read": {widget, with("fine"), "is not ready"},
		"a kind of Kubernetes":            {schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, map[string]any{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: test.fields}
			if got := shortOf(u, test.kind); got != test.want {
				t.Errorf("it %s; want %q", got, test.want)
			}
			if u.GetKind() != "" {
				t.Error("the cache's own object was written to")
			}
		})
	}
}

// TestChangedForTheAuthor: what the author's function sees in an update nobody else knows; and
// as long as nobody has asked for an object, nobody knows what its kind is called.
func TestChangedForTheAuthor(t *testing.T) {
	claim, busy := &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	k := dependencyKind{to: claim, asked: &asked{}}
	if !k.changed(claim, busy) {
		t.Error("an update is lost before the kind is known")
	}
	k.asked.by(Dependency{To: claim}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if k.changed(claim, busy) {
		t.Error("a busy dependency wakes those for which it is there")
	}
	k.asked.by(Dependency{To: claim, Ready: func(client.Object) (bool, string) { return true, "" }}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if !k.changed(claim, busy) {
		t.Error("an update is lost that the author may judge by")
	}
}

func TestReadinessChanged(t *testing.T) {
	tests := map[string]struct {
		why    string
		change func(*thingv1.Thing)
		want   bool
	}{
		"nothing":             {"", func(*thingv1.Thing) {}, false},
		"something else":      {"a busy dependency wakes nobody", func(o *thingv1.Thing) { o.Status.Host, o.Labels = "h", map[string]string{"a": "b"} }, false},
		"no longer ready":     {"", func(o *thingv1.Thing) { o.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"another object":      {"deleted and created between two looks of the cache", func(o *thingv1.Thing) { o.UID = "u2" }, true},
		"is to go":            {"it is waited for no longer", func(o *thingv1.Thing) { o.DeletionTimestamp = new(metav1.Now()) }, true},
		"made again":          {"what depended on it went with it", func(o *thingv1.Thing) { o.Status.External.Incarnation = 2 }, true},
		"no longer out there": {"", func(o *thingv1.Thing) { o.Status.External = nil }, true},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			before, after := dependency(), dependency(test.change)
			if got := readinessChanged(before, after, schema.GroupVersionKind{}); got != test.want {
				t.Errorf("%s: matters %t, want %t", test.why, got, test.want)
			}
			if got := readinessChanged(after, before, schema.GroupVersionKind{}); got != test.want {
				t.Errorf("%s, the other way round: matters %t, want %t", test.why, got, test.want)
			}
		})
	}
}

// visit is a pass as far as a call needs one.
func visit() *pass {
	e := &Engine{}
	return &pass{obj: &thingv1.Thing{}, e: e, shared: e.clients.of(objectKey{}, ""), track: &track{}}
}

// TestCallsAtTheEnd: the process stops while calls are made.
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
		"observe": {"a look can be had again", decide.ActionObserve, true},
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

// TestMetadataLostInOneProcess: a prepared marker undoes nothing of what this process did by
// a record that the object has lost.
func TestMetadataLostInOneProcess(t *testing.T) {
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	first := record.Record{ID: "orders", Incarnation: 1, UID: "u1", Create: record.Marker{By: "pod"}}
	second := first
	first.Create.At, second.Create.At = now, now.Add(time.Second)
	var tr track
	tr.prepared = first.Create
	tr.read(first, now, time.Hour)
	if tr.creation != decide.CreationUntold {
		t.Fatalf("creation %d of a first record, want %d", tr.creation, decide.CreationUntold)
	}
	tr.sawNothing()
	tr.createAnswered(false, decide.ClassUnknown, now)
	tr.prepared = second.Create
	if !tr.read(second, now.Add(time.Second), time.Hour) {
		t.Fatal("the prepared record is taken for an old one")
	}
	tr.sawNothing() // a look that is behind
	if tr.creation != decide.CreationCalled || !tr.called.Equal(now) {
		t.Errorf("creation %d at %s; it was called at %s", tr.creation, tr.called, now)
	}
}

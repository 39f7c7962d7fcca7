package health

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	thingv1 "github.com/trimtab-dev/trimtab/internal/thing"
)

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

func TestReady(t *testing.T) {
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
			if got := Lacking(dependency(test.change), schema.GroupVersionKind{}) == ""; got != test.want {
				t.Errorf("%s: ready %t, want %t", test.why, got, test.want)
			}
		})
	}
}

// TestReadyOfOthers: a condition that somebody else's controller left behind is out of date.
func TestReadyOfOthers(t *testing.T) {
	for generation, want := range map[int64]bool{1: false, 2: true} {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(dependency(func(o *thingv1.Thing) {
			o.Status.Conditions[0].ObservedGeneration = generation
		}))
		if err != nil {
			t.Fatal(err)
		}
		if got := Lacking(&unstructured.Unstructured{Object: u}, schema.GroupVersionKind{}) == ""; got != want {
			t.Errorf("ready %t for generation %d of 2; want %t", got, generation, want)
		}
	}
}

// TestLacking: kstatus takes what says nothing for current. That is right for what can say
// nothing, and for an object that Kubernetes itself looks after.
func TestLacking(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	gateway := schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
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
		"known, and its controller has not come yet": {
			schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"},
			map[string]any{},
			"has no status yet",
		},
		"nothing but defaults": {gateway, with(map[string]any{"conditions": []any{
			map[string]any{"type": "Programmed", "status": "Unknown", "lastTransitionTime": never},
		}}), "is not ready"},
		"another condition": {gateway, with(map[string]any{"conditions": []any{
			map[string]any{"type": "Accepted", "status": "True"},
		}}), "is not ready"},
		"its condition": {gateway, with(map[string]any{"conditions": []any{
			map[string]any{"type": "Programmed", "status": "True"},
		}}), ""},
		"an address is not asked for": {
			schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
			with(map[string]any{"loadBalancer": map[string]any{}}), "",
		},
		"a kind of Kubernetes": {schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, map[string]any{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: test.fields}
			if got := Lacking(u, test.kind); got != test.want {
				t.Errorf("it %s; want %q", got, test.want)
			}
			if u.GetKind() != "" {
				t.Error("the cache's own object was written to")
			}
		})
	}
}

func TestChanged(t *testing.T) {
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
			if got := Changed(before, after, schema.GroupVersionKind{}); got != test.want {
				t.Errorf("%s: matters %t, want %t", test.why, got, test.want)
			}
			if got := Changed(after, before, schema.GroupVersionKind{}); got != test.want {
				t.Errorf("%s, the other way round: matters %t, want %t", test.why, got, test.want)
			}
		})
	}
}

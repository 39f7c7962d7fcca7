// Package health reports whether another object is ready: one that an object depends on, or one
// that it is made of. The condition Ready of an object decides; without that condition, kstatus does.
// docs/health.md says what that means for each kind.
package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// NotReady is what an object lacks if no more is known.
const NotReady = "is not ready"

// Lacking returns what an object lacks to be ready, as the end of a sentence about it ("has failed"),
// and nothing if it is ready. gvk is the kind of obj, which typed objects from a cache do not carry.
// Objects of trimtab kinds, and others with a condition Ready, are as ready as that condition says.
//
// For all others [Of] decides, with one difference: a custom resource without a status is not ready, and
// neither is one without the conditions that docs/health.md names for its kind. Its controller has not seen it
// yet, and what is created in an external system because of it is not easily taken back. A dependency whose
// kind never gets a status needs a function that judges it, such as external.Dependency.Ready.
func Lacking(obj client.Object, gvk schema.GroupVersionKind) string {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return NotReady
	}
	ready, said := saysReady(obj, fields)
	switch _, ours := obj.(api.Object); {
	case said || ours:
		if !ready {
			return NotReady
		}
		return ""
	default:
		return lackingCurrent(obj, fields, gvk)
	}
}

// saysReady reports whether an object has the condition Ready, and whether it says that the object is
// ready for its current spec. An object with an external resource stays ready for an earlier spec if
// the current one cannot be applied: the resource works, which is what others need.
func saysReady(obj client.Object, fields map[string]any) (ready, said bool) {
	generation := obj.GetGeneration()
	g, found, err := unstructured.NestedInt64(fields, "status", "observedGeneration")
	outdated := err == nil && found && g != generation
	conditions, _, _ := unstructured.NestedSlice(fields, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != api.ConditionReady {
			continue
		}
		_, ours := obj.(api.ExternalObject)
		g, found, err := unstructured.NestedInt64(m, "observedGeneration")
		return !outdated && m["status"] == "True" && (err != nil || !found || g == generation || ours && g < generation), true
	}
	return false, false
}

// lackingCurrent returns what an object without a condition Ready lacks to be Current. It asks for more
// than [Of]: see [Lacking].
func lackingCurrent(obj client.Object, fields map[string]any, gvk schema.GroupVersionKind) string {
	u := &unstructured.Unstructured{Object: fields}
	if _, same := obj.(*unstructured.Unstructured); same {
		u = u.DeepCopy() // the converter hands out the object's own fields
	}
	u.SetGroupVersionKind(gvk) // typed objects from a cache have none
	known := table[gvk.GroupKind()]
	switch result := Of(u, Hints{Conditions: known.conditions}, nil); {
	case result.Status == Failed:
		return "has failed"
	case !speaks(u) && isSilent(obj, fields, gvk):
		return "has no status yet"
	case result.Status != Current:
		return NotReady
	}
	return ""
}

// isSilent reports whether an object that can have a status has none. Whether an untyped object can
// have one is not known if its kind is not, so kinds of Kubernetes are assumed to have it if they can.
func isSilent(obj client.Object, fields map[string]any, gvk schema.GroupVersionKind) bool {
	said, found := fields["status"]
	if !found {
		_, untyped := obj.(*unstructured.Unstructured)
		custom := table[gvk.GroupKind()].custom || strings.Contains(gvk.Group, ".") && !strings.HasSuffix(gvk.Group, ".k8s.io")
		return untyped && custom
	}
	status, ok := said.(map[string]any)
	return ok && len(status) == 0
}

// Changed reports whether an update of an object can matter to those that depend on it. A recreated
// external resource matters even if the object was Ready all the time, because whatever depends on the
// resource was lost with it. A new spec does not matter before the status reports on it: otherwise all
// dependents would wait for a moment at each change.
func Changed(before, after client.Object, gvk schema.GroupVersionKind) bool {
	caughtUp := Lacking(after, gvk) == "" && Lacking(before, gvk) != ""
	return caughtUp || Lacking(AsReported(before), gvk) != Lacking(AsReported(after), gvk) ||
		before.GetUID() != after.GetUID() || incarnationOf(before) != incarnationOf(after) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// AsReported returns obj at the generation that its status reports on, so that [Lacking] judges the
// status and not its age.
func AsReported(obj client.Object) client.Object {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return obj
	}
	observed, found, err := unstructured.NestedInt64(fields, "status", "observedGeneration")
	if err != nil || !found || observed == obj.GetGeneration() {
		return obj
	}
	then, is := obj.DeepCopyObject().(client.Object)
	if !is {
		return obj
	}
	then.SetGeneration(observed)
	return then
}

// incarnationOf is how often the external resource of an object was created; 0 if it has none.
func incarnationOf(obj client.Object) int64 {
	o, ok := obj.(api.ExternalObject)
	if !ok || o.TrimtabExternal().External == nil {
		return 0
	}
	return o.TrimtabExternal().External.Incarnation
}

package fingerprint

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeforeFirstApply is the field manager to which the API server attributes all fields of an object
// without managedFields when something is applied to it.
const BeforeFirstApply = "before-first-apply"

// Writer is who wrote fields of an object.
type Writer struct {
	Manager   string
	Operation metav1.ManagedFieldsOperationType
	// Subresource is empty for the object itself.
	Subresource string
	// Paths are the requested paths that the writer owns, or the parts of them that it owns.
	Paths []Path
}

// Managers returns who owns the values at the paths, ordered by manager, operation and subresource.
// A value that was deleted, or that admission changed in the request of another, has no owner, and
// several can own the same value.
func Managers(live map[string]any, paths []Path) []Writer {
	metadata, _ := live["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	var writers []Writer
	for _, item := range list {
		entry, _ := item.(map[string]any)
		set, _ := entry["fieldsV1"].(map[string]any)
		var owned []Path
		for _, p := range paths {
			if at, ok := ownedAt(set, p); ok {
				owned = append(owned, at)
			}
		}
		if len(owned) > 0 {
			writers = append(writers, writerOf(entry, owned))
		}
	}
	slices.SortFunc(writers, func(a, b Writer) int {
		return cmp.Or(
			cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(a.Subresource, b.Subresource),
		)
	})
	return writers
}

func writerOf(entry map[string]any, owned []Path) Writer {
	manager, _ := entry["manager"].(string)
	operation, _ := entry["operation"].(string)
	subresource, _ := entry["subresource"].(string)
	return Writer{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation),
		Subresource: subresource, Paths: owned,
	}
}

// ownedAt returns the path if the set owns it or something in it. If the set owns a value that the
// path leads into as a whole, that value counts.
func ownedAt(set map[string]any, p Path) (Path, bool) {
	for i, element := range p {
		below, ok := set[element].(map[string]any)
		if !ok {
			return nil, false
		}
		if len(below) == 0 {
			return p[:i+1], true
		}
		set = below
	}
	return p, len(p) > 0
}

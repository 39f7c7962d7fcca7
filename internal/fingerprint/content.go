package fingerprint

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfContent returns the hash of all that users write to an object: its status and what the API server
// keeps about it are left out. It tells that something changed where the manager's entry does not say
// what it wrote. It reports false if the manager applied the object and updated none of it: then [Of]
// tells.
func OfContent(live map[string]any, manager string) (Hash, bool) {
	applied, _ := entries(live, manager, metav1.ManagedFieldsOperationApply)
	updated, _ := entries(live, manager, metav1.ManagedFieldsOperationUpdate)
	if applied != nil && updated == nil {
		return Hash{}, false
	}
	content := maps.Clone(live)
	delete(content, "status")
	if metadata, ok := live["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range serverFields() {
			delete(metadata, name)
		}
		content["metadata"] = metadata
	}
	w := newWalker(nil)
	w.wholeMap(content)
	return w.sumFor(live), true
}

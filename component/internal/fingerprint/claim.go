package fingerprint

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Claim returns the managedFields with which an update says that the manager owns all fields of the
// manifest. Without them an update owns only what it changes, and [Of] does not see what happens to
// the rest. The entries of other managers stay as they are in the live object, which should be the one
// that is updated.
func Claim(live, manifest map[string]any, manager string) []any {
	metadata, _ := live["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	claimed := make([]any, 0, len(list)+1)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if entry["manager"] == manager && subresource == "" && entry["operation"] == string(metav1.ManagedFieldsOperationUpdate) {
			continue
		}
		claimed = append(claimed, item)
	}
	return append(claimed, map[string]any{
		"manager":    manager,
		"operation":  string(metav1.ManagedFieldsOperationUpdate),
		"apiVersion": manifest["apiVersion"],
		"fieldsType": "FieldsV1",
		"fieldsV1":   manifestSet(manifest, live),
	})
}

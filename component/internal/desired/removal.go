package desired

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// CheckRemovals reports recorded objects that are not among the objects any more although what stays
// would be deleted with them: definitions whose instances stay, and Namespaces whose contents stay.
// Recorded policies must be filled in. Those that are released, not deleted, may go.
func CheckRemovals(recorded []api.InventoryItem, objects []Object) error {
	var p problems
	stays := make(map[string]bool, len(objects))
	var types []api.TypeInfo // that are still added by others
	for _, o := range objects {
		stays[o.Item.Key()] = true
		types = append(types, o.Item.ManagedTypes...)
	}
	for _, item := range recorded {
		kind := schema.GroupKind{Group: item.Group, Kind: item.Kind}
		released := item.DeletePolicy == api.DeletePolicyOrphan || item.DeletePolicy == api.DeletePolicyOrphanOnApply
		if !definesAPI(kind) || stays[item.Key()] || released {
			continue
		}
		for _, o := range objects {
			instance := Manages(item.ManagedTypes, o.groupKind()) && !Manages(types, o.groupKind())
			if instance || isNamespace(kind) && o.Item.Namespace == item.Name {
				p.add("%s %s is no longer in the set, but %s, which would be deleted with it, is; add the one or remove the other",
					item.Kind, item.Name, titleOf(o.Item))
				break
			}
		}
	}
	return p.join()
}

func (o Object) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: o.Item.Group, Kind: o.Item.Kind}
}

package corpus

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// memory is the UIDs of objects that bear an operator's finalizer, by name. A DELETE that was under
// way when the finalizer was written takes the object with the finalizer on it, and nobody asks
// for what the external API has: the operator has to know by itself that it was there.
type memory map[types.NamespacedName]types.UID

// bury removes what belongs to an object that went without asking. now is the UID of what has its
// name now, empty if nothing has.
func (m memory) bury(ctx context.Context, cloud API, key types.NamespacedName, now types.UID) error {
	uid, known := m[key]
	if !known || uid == now {
		return nil
	}
	if err := removeMachines(ctx, cloud, uid); err != nil {
		return err
	}
	delete(m, key)
	return nil
}

// removeMachines deletes the external resources of an object.
func removeMachines(ctx context.Context, cloud API, uid types.UID) error {
	all, err := cloud.List(ctx, string(uid))
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := cloud.Delete(ctx, m.ID); err != nil {
			return err
		}
	}
	return nil
}

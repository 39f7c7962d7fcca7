package engine

import (
	"bytes"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
)

// memory has what this process knows better than the inventories. The repair of a dependent changes its
// fingerprint, and its UID if it was deleted; neither is worth a write of its own. A process that does not
// remember them finds out by an apply that changes nothing.
type memory struct {
	mu         sync.Mutex
	components map[types.UID]map[string]baseline
}

// baseline is what an object was when the operator last wrote to it.
type baseline struct{ uid, fingerprint string }

// recall brings the items of a component's inventory up to date.
func (m *memory) recall(component types.UID, inventory []api.InventoryItem) []api.InventoryItem {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.components[component]
	if len(known) == 0 {
		return inventory
	}
	inventory = slices.Clone(inventory)
	for i := range inventory {
		if b, ok := known[inventory[i].Key()]; ok {
			inventory[i].UID, inventory[i].Fingerprint = b.uid, b.fingerprint
		}
	}
	return inventory
}

// retain keeps what an inventory says of its items, and returns the inventory to write: the one that was
// read if the new one says nothing else.
func (m *memory) retain(component types.UID, read, now []api.InventoryItem) []api.InventoryItem {
	if len(read) != len(now) {
		m.forget(component)
		return now
	}
	better := map[string]baseline{}
	for i, item := range now {
		key := item.Key()
		b := baseline{item.UID, item.Fingerprint}
		if b != (baseline{read[i].UID, read[i].Fingerprint}) {
			better[key] = b
		}
		item.UID, item.Fingerprint = read[i].UID, read[i].Fingerprint
		if !same(item, read[i]) {
			m.forget(component)
			return now
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.components == nil {
		m.components = map[types.UID]map[string]baseline{}
	}
	if m.components[component] = better; len(better) == 0 {
		delete(m.components, component)
	}
	return read
}

// forget drops what is known of a component.
func (m *memory) forget(component types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.components, component)
}

// same reports whether two items say the same.
func same(a, b api.InventoryItem) bool {
	lists := slices.Equal(a.ManagedTypes, b.ManagedTypes) && slices.Equal(a.DependsOn, b.DependsOn) &&
		bytes.Equal(a.Record, b.Record)
	return lists && a.Group == b.Group && a.Version == b.Version && a.Kind == b.Kind && a.Namespace == b.Namespace &&
		a.Name == b.Name && a.UID == b.UID && a.Policies == b.Policies && a.ApplyOrder == b.ApplyOrder &&
		a.DeleteOrder == b.DeleteOrder && a.Since.Equal(b.Since) && a.Digest == b.Digest && a.Fingerprint == b.Fingerprint && a.Phase == b.Phase && a.Status == b.Status && a.Kept == b.Kept
}

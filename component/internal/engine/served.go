package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// discovery is when an object is tried again whose kind is not served although its definition is ready: API
// servers need a moment to say what they serve.
const discovery = 200 * time.Millisecond

// defines reports whether an item defines a kind in a version.
func defines(item api.InventoryItem, kind schema.GroupVersionKind) bool {
	if isAPIService(item) {
		return item.Name == kind.Version+"."+kind.Group
	}
	return slices.Contains(item.ManagedTypes, api.TypeInfo{Group: kind.Group, Kind: kind.Kind})
}

// missing reports whether a definition that the component is to have does not work: it was never applied, or
// is not ready. Nobody asks for objects of its kinds then, since the answer would be an error.
func (p *pass) missing(definition api.InventoryItem) bool {
	if live, found := p.Target.Cache.Get(liveKey(definition)); found {
		return live.Health.Status != health.Current
	}
	return !slices.ContainsFunc(p.c.Status.Inventory, func(i api.InventoryItem) bool {
		return i.UID != "" && i.Key() == definition.Key()
	})
}

// unborn reports whether no member of a kind can exist, because what defines the kind is missing.
func (p *pass) unborn(kind schema.GroupVersionKind, members []*member) bool {
	if slices.ContainsFunc(members, func(m *member) bool { return m.wanted == nil || m.item.UID != "" }) {
		return false
	}
	missing := false
	for _, m := range p.members {
		if m.wanted != nil && defines(m.item, kind) {
			if !p.missing(m.item) {
				return false
			}
			missing = true
		}
	}
	return missing
}

// undefined are the definitions among objects that do not work.
func (p *pass) undefined(objects []desired.Object) []api.InventoryItem {
	var items []api.InventoryItem
	for i := range objects {
		if item := objects[i].Item; len(item.ManagedTypes) > 0 && p.missing(item) {
			items = append(items, item)
		}
	}
	return items
}

// postpone has the creation of a member tried again soon if its kind is not served yet. It reports whether
// that is so.
func (m *member) postpone(err error) bool {
	if unserved := m.wanted.Managed && apply.Unserved(err); !unserved && !m.wanted.Unserved {
		return false
	}
	m.refused, m.again = "cannot be created before the API server serves its kind", discovery
	return true
}

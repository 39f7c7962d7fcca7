package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// rebuild finds the dependents of a component whose inventory is empty or has lost a part: of a new one, which
// has none, and of one whose status was lost. It asks the projections of the kinds that the operator declares, of those that
// are rendered now, and of those that are watched already, and so needs no read of its own. objects are what
// is rendered.
//
// What the operator applied last to a dependent is not known any more, so its present values count as that.
// Policies and orders are those of the rendered object or else the defaults. strict has a kind that cannot be
// watched be an error, unless it is not served.
func (p *pass) rebuild(ctx context.Context, objects []desired.Object, strict bool) error {
	if p.listed() {
		return nil
	}
	versions := map[schema.GroupKind]string{}
	for _, kind := range p.Kinds {
		versions[kind.GroupKind()] = kind.Version
	}
	wanted := make(map[string]*desired.Object, len(objects))
	namespaces := p.places(objects)
	definitions := map[schema.GroupKind]string{}
	for i := range objects {
		o := &objects[i]
		wanted[o.Item.Key()] = o
		kind := schema.GroupKind{Group: o.Item.Group, Kind: o.Item.Kind}
		if versions[kind] = o.Item.Version; isAPIService(o.Item) || isCRD(o.Item) {
			definitions[kind] = o.Item.Version
		}
	}
	if err := p.know(ctx, definitions, namespaces); err != nil && strict {
		return fmt.Errorf("find the dependents: %w", err)
	}
	for _, definition := range p.undefined(objects) { // there are no objects of its kinds
		for kind, version := range versions {
			if defines(definition, kind.WithVersion(version)) {
				delete(versions, kind)
			}
		}
	}
	if err := p.know(ctx, versions, namespaces); err != nil && strict {
		return fmt.Errorf("find the dependents: %w", err)
	}
	for key, live := range p.Target.Cache.OwnedBy(p.c.Owner) {
		if _, _, own, _ := desired.ParseOwner(live.Owner); !p.mine(live.Owner, own) {
			continue // of an earlier component of this name; the old form of the annotation does not tell
		}
		p.found = append(p.found, p.itemOf(key, live, versions[key.GroupKind], wanted))
	}
	return nil
}

// listed reports whether the inventory has all dependents.
func (p *pass) listed() bool { return len(p.c.Status.Inventory) > 0 && !p.c.Lost }

// places are the namespaces where dependents may be.
func (p *pass) places(objects []desired.Object) map[string]bool {
	namespaces := map[string]bool{p.c.In: true}
	for _, n := range p.Within {
		namespaces[n] = true
	}
	for i := range objects {
		if n := objects[i].Item.Namespace; n != "" {
			namespaces[n] = true
		}
	}
	return namespaces
}

// know watches kinds, at least in these namespaces.
func (p *pass) know(ctx context.Context, versions map[schema.GroupKind]string, namespaces map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	var problems []error
	kinds := slices.SortedFunc(maps.Keys(versions), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, kind := range kinds {
		if p.Drivers[kind] != nil {
			continue
		}
		for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
			if err := p.Target.Cache.Use(ctx, p.user(), kind.WithVersion(versions[kind]), namespace); err != nil && !meta.IsNoMatchError(err) {
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}

// itemOf is what is recorded of a dependent that was found.
func (p *pass) itemOf(key projection.Key, live projection.Object, version string, wanted map[string]*desired.Object) api.InventoryItem {
	item := api.InventoryItem{Group: key.Group, Version: version, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Policies: p.c.Policies}
	if version == "" {
		if mapping, err := p.Target.Mapper.RESTMapping(key.GroupKind); err == nil {
			item.Version = mapping.GroupVersionKind.Version
		}
	}
	m := member{item: item, wanted: wanted[item.Key()]}
	if m.wanted != nil {
		m.item = m.wanted.Item
	}
	owned := live.Print
	if replaces(&m) && live.Content != (projection.Object{}).Content {
		owned.Owned = live.Content
	}
	m.item.UID, m.item.Digest, m.item.Fingerprint = string(live.UID), live.Digest, owned.String()
	if projection.MetadataOnly(key.GroupKind) {
		m.item.Fingerprint += "@" + live.Version
	}
	return m.item
}

// rediscover is rebuild for a component that is deleted. If something was found, it is rendered once more:
// only the manifests say which objects stay. They also say which nodes there may be: whether there are, only
// their drivers know.
func (p *pass) rediscover(ctx context.Context) error {
	if p.givesUpUnrecorded() {
		return nil
	}
	if err := p.rebuild(ctx, nil, true); err != nil || p.listed() || len(p.found) == 0 && !p.remembers() {
		return err
	}
	objects, err := p.render(ctx)
	if err != nil && len(p.found) == 0 && !p.mayHaveNodes() {
		return nil
	}
	if err != nil {
		return p.unrenderedError(err)
	}
	p.found = nil
	if err := p.rebuild(ctx, objects, true); err != nil {
		return err
	}
	return p.remember(ctx, objects)
}

// allowed checks kinds and namespaces of rendered objects against what the operator may touch.
func (p *pass) allowed(objects []desired.Object) error {
	kinds, namespaces := map[schema.GroupKind]bool{}, map[string]bool{"": true, p.c.In: true}
	for _, k := range p.Kinds {
		kinds[k.GroupKind()] = true
	}
	for _, n := range p.Within {
		namespaces[n] = true
	}
	var list []error
	for i := range objects {
		item := objects[i].Item
		if p.Drivers[kindOf(item)] != nil {
			continue
		}
		if len(kinds) > 0 && !kinds[schema.GroupKind{Group: item.Group, Kind: item.Kind}] {
			list = append(list, fmt.Errorf("%s: the operator is not allowed to touch objects of group %q and kind %s; "+
				"add the kind to its Options.Kinds, or remove the object", ref(item), item.Group, item.Kind))
		}
		if len(p.Within) > 0 && !namespaces[item.Namespace] {
			list = append(list, fmt.Errorf("%s: the operator is not allowed to touch objects in namespace %s; "+
				"add it to its Options.Within, or remove the object", ref(item), item.Namespace))
		}
	}
	return errors.Join(list...)
}

package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
)

// shield has the API server refuse to delete the definitions that the component is to have, unless they are
// released. If that is not possible, they are not written.
func (p *pass) shield(ctx context.Context) {
	if !p.Protect {
		return
	}
	var definitions []*member
	for _, m := range p.members {
		if m.wanted != nil && isCRD(m.item) {
			definitions = append(definitions, m)
		}
	}
	if len(definitions) == 0 {
		return
	}
	err := p.raise(ctx)
	for _, m := range definitions {
		if err == nil {
			err = p.reprotect(ctx, m)
		}
		if err != nil {
			m.unshielded, m.failed = err, err
		}
	}
}

// raise puts the shield up if this process has not done that, or if somebody has deleted it since.
func (p *pass) raise(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	for _, o := range prune.ShieldRefs(p.Name) {
		if err := p.Target.Cache.Follow(waiting, p.user(), o.GroupVersionKind, o.NamespacedName); err != nil {
			return fmt.Errorf("protect definitions by %s: %w", o, err)
		}
	}
	gone := false
	for _, key := range p.shieldKeys() {
		version, _, known := p.Target.Cache.Followed(key)
		gone = gone || known && version == ""
	}
	return p.Target.Shield.Up(ctx, p.Target.Client, p.Name, desired.OwnerKey(p.Name), gone)
}

// shieldKeys are the objects of the shield. A component follows them as long as it follows anything.
func (p *pass) shieldKeys() []projection.Key {
	if !p.Protect {
		return nil
	}
	var keys []projection.Key
	for _, o := range prune.ShieldRefs(p.Name) {
		keys = append(keys, projection.Key{GroupKind: o.GroupKind(), NamespacedName: o.NamespacedName})
	}
	return keys
}

// reprotect ends the release of a definition that the component is to have, some time after it was seen: whoever
// released it by hand may want to delete it. A process that was killed between the release and the deletion leaves
// one behind, too.
func (p *pass) reprotect(ctx context.Context, m *member) error {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found || !live.Released || live.Leaving || !p.owns(m, live) {
		p.released.drop(p.fighter(m))
		return nil
	}
	if p.modeOf(m) != api.ModeFull {
		return nil
	}
	since, known := p.released.get(p.fighter(m))
	if !known {
		since = p.now()
		p.released.set(p.fighter(m), since)
	}
	if rest := since.Add(p.recheck()).Sub(p.now()); rest > 0 {
		m.again = rest
		return nil
	}
	definition, err := p.definition(ctx, m)
	if err == nil && definition != nil {
		err = p.keep(ctx, definition)
	}
	if apierrors.IsConflict(err) { // somebody writes it at this moment
		m.again, err = soon, nil
	}
	if err != nil {
		return fmt.Errorf("protect %s again: %w", ref(m.item), err)
	}
	return nil
}

// unshield releases a definition that may be deleted, and returns it as it is then.
func (p *pass) unshield(ctx context.Context, m *member, definition *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !isCRD(m.item) || prune.Released(p.Name, definition) {
		return definition, nil
	}
	live, err := prune.Release(ctx, p.Target.Client, p.Name, definition, true)
	if err == nil {
		p.Target.Cache.Note(live)
	}
	return live, err
}

// keep has a definition protected again that was released and is not deleted.
func (p *pass) keep(ctx context.Context, definition *unstructured.Unstructured) error {
	if !prune.Released(p.Name, definition) {
		return nil
	}
	live, err := prune.Release(ctx, p.Target.Client, p.Name, definition, false)
	if err == nil {
		p.Target.Cache.Note(live)
	}
	return err
}

// deleteReleased deletes a definition. Where definitions are protected it is released first; where they are not, it
// is released if they were.
func (p *pass) deleteReleased(ctx context.Context, m *member, definition *unstructured.Unstructured) error {
	if p.Protect {
		released, err := p.unshield(ctx, m, definition)
		if err != nil {
			return err
		}
		return p.deleteAs(ctx, m, released.GetUID(), released.GetResourceVersion())
	}
	err := p.deleteAs(ctx, m, definition.GetUID(), definition.GetResourceVersion())
	if !prune.Shielded(err, p.Name) {
		return err
	}
	if definition, err = p.unshield(ctx, m, definition); err != nil {
		return err
	}
	return p.deleteAs(ctx, m, definition.GetUID(), definition.GetResourceVersion())
}

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
)

// shield has the API server refuse to delete the definitions that the component is to have, unless the component
// releases them. If that is not possible, they are not written.
func (p *pass) shield(ctx context.Context) {
	if !p.Protect {
		return
	}
	for _, m := range p.members {
		if m.wanted == nil || !isCRD(m.item) {
			continue
		}
		if err := p.Target.Shield.Up(ctx, p.Target.Client, p.Name, desired.OwnerKey(p.Name)); err != nil {
			m.unshielded, m.failed = err, err
		}
	}
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

// keep has a definition protected again whose deletion is blocked after it was released.
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

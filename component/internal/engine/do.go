package engine

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/apply"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/graph"
)

// do performs an action on a member and returns what is known of it then. It is called for several
// members at a time, never for one.
func (p *pass) do(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
	m := p.members[key]
	err := p.perform(ctx, m, action)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", action, ref(m.item), err)
	}
	return p.facts(m), err
}

func (p *pass) perform(ctx context.Context, m *member, action graph.Action) error {
	switch action {
	case graph.Create:
		m.item.Phase = api.PhaseCreating
		return p.create(ctx, m)
	case graph.Update:
		m.item.Phase = api.PhaseUpdating
		return p.update(ctx, m, types.UID(m.item.UID))
	case graph.Recreate:
		m.item.Phase = api.PhaseUpdating
		return p.delete(ctx, m)
	case graph.Complete:
		m.item.Phase = api.PhaseCompleting
		m.recorded = false
	case graph.Purge:
		return p.delete(ctx, m)
	case graph.Delete:
		m.item.Phase = api.PhaseDeleting
		return p.delete(ctx, m)
	case graph.Release:
		return p.release(ctx, m)
	case graph.Forget:
		m.forgotten = true
	case graph.None, graph.Record:
	}
	return nil
}

// create creates an object, or takes over the one that exists.
func (p *pass) create(ctx context.Context, m *member) error {
	if err := p.Target.Cache.Watch(ctx, ref(m.item).GroupVersionKind); err != nil {
		return err
	}
	live, err := p.Target.Client.Create(ctx, m.wanted.Manifest)
	if errors.Is(err, apply.ErrExists) {
		return p.adopt(ctx, m)
	}
	if err == nil {
		p.note(m, live)
	}
	return err
}

// adopt takes over an object that exists, if it is the component's own or its policy allows it.
func (p *pass) adopt(ctx context.Context, m *member) error {
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	if err != nil {
		return err
	}
	owner := live.GetAnnotations()[desired.OwnerKey(p.Name)]
	ours := owner == desired.OwnerAnnotation(p.c.Owner, m.item.Key())
	switch {
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("an object of that name is being deleted; waiting until it is gone")
	case ours, m.item.AdoptionPolicy == api.AdoptionPolicyAlways, owner == "" && m.item.AdoptionPolicy == api.AdoptionPolicyIfUnowned:
		return p.update(ctx, m, live.GetUID())
	case owner == "":
		m.refused = fmt.Sprintf("exists and has no owner; set %s/adoption-policy: if-unowned to adopt it", p.Name)
	default:
		m.refused = fmt.Sprintf("exists and belongs to %s; set %s/adoption-policy: always to adopt it", owner, p.Name)
	}
	return errors.New(m.refused)
}

// update brings the object with that uid to the manifest.
func (p *pass) update(ctx context.Context, m *member, uid types.UID) error {
	if live, found := p.Target.Cache.Get(liveKey(m.item)); found {
		uid = live.UID
	}
	live, err := p.Target.Client.Apply(ctx, m.wanted.Manifest, uid)
	if err == nil {
		p.note(m, live)
	}
	return err
}

// delete deletes the object as it was last seen.
func (p *pass) delete(ctx context.Context, m *member) error {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found {
		return nil
	}
	left, err := p.Target.Client.Delete(ctx, ref(m.item), live.UID, live.Version)
	switch {
	case err != nil:
		return err
	case left == nil:
		p.Target.Cache.NoteGone(liveKey(m.item), live.UID)
	default:
		p.Target.Cache.Note(left)
	}
	return nil
}

// release gives up an object: it stays, without our label and annotations.
func (p *pass) release(ctx context.Context, m *member) error {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found || !p.owns(m, live) {
		m.forgotten = true
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{
		"uid":         string(live.UID),
		"labels":      map[string]any{desired.OwnerKey(p.Name): nil},
		"annotations": map[string]any{desired.OwnerKey(p.Name): nil, desired.DigestKey(p.Name): nil},
	}}
	if _, err := p.Target.Client.Patch(ctx, ref(m.item), patch); err != nil {
		return err
	}
	p.Target.Cache.NoteGone(liveKey(m.item), live.UID)
	m.forgotten = true
	return nil
}

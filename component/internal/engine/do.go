package engine

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// do performs an action on a member and returns what is known of it then. It is called for several
// members at a time, never for one.
func (p *pass) do(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
	m := p.members[key]
	m.did = ""
	err := p.perform(ctx, m, action)
	if err != nil {
		err = cannot(action, ref(m.item), err)
	}
	p.tell(m, action, err)
	return p.facts(m), err
}

func (p *pass) perform(ctx context.Context, m *member, action graph.Action) error {
	if m.node {
		return p.performNode(ctx, m, action)
	}
	if needsManifest := action == graph.Create || action == graph.Update || action == graph.Recreate; needsManifest {
		if err := p.complete(ctx, m); err != nil {
			return err
		}
	}
	if action == graph.Delete || action == graph.Release {
		if given, err := p.give(ctx, m); given || err != nil {
			return err
		}
	}
	if m.unshielded != nil && m.wanted != nil {
		return m.unshielded
	}
	switch action {
	case graph.Create, graph.Update:
		return p.apply(ctx, m, action)
	case graph.Recreate:
		m.item.Phase = api.PhaseUpdating
		return p.delete(ctx, m)
	case graph.Complete:
		// The phase is durable when this pass has ended. The next one purges.
		m.item.Phase, m.again = api.PhaseCompleting, soon
	case graph.Purge:
		return p.delete(ctx, m)
	case graph.Delete:
		return p.leave(ctx, m)
	case graph.Release:
		return p.release(ctx, m)
	case graph.Forget:
		return p.forget(ctx, m)
	case graph.None, graph.Record:
	}
	return nil
}

func (p *pass) performCreate(ctx context.Context, m *member) error {
	m.item.Phase, m.completed = api.PhaseCreating, false
	if m.wanted.Unserved { // a pass that knows its scope creates it
		m.postpone(nil)
		return nil
	}
	err := p.correct(ctx, m, p.create)
	if err != nil && m.postpone(err) {
		return nil
	}
	return err
}

func (p *pass) performUpdate(ctx context.Context, m *member) error {
	switch {
	case m.mayExpire() && m.corrects():
		return p.expire(ctx, m)
	case m.once() && p.known(m):
		return p.claim(ctx, m)
	case m.ended() && m.corrects(): // it has still done its work
		return p.correct(ctx, m, p.update)
	case m.item.Digest == "": // it was created, and that was not recorded
		m.item.Phase = api.PhaseCreating
	default:
		m.item.Phase = api.PhaseUpdating
	}
	m.completed = false
	return p.correct(ctx, m, p.update)
}

// known reports whether the object of a member is known to exist.
func (p *pass) known(m *member) bool {
	_, found := p.Target.Cache.Get(liveKey(m.item))
	return found
}

// claim makes an object that is never written again the component's, and leaves its content as it is. Its owner was an
// earlier component, or component-operator-runtime wrote it.
func (p *pass) claim(ctx context.Context, m *member) error {
	seen, _ := p.Target.Cache.Get(liveKey(m.item))
	live, err := p.Target.Client.Patch(ctx, ref(m.item), map[string]any{"metadata": map[string]any{
		"uid": string(seen.UID), "resourceVersion": seen.Version,
		"annotations": map[string]any{desired.OwnerKey(p.Name): desired.OwnerAnnotation(p.c.Owner, string(p.c.UID), m.item.Key())},
	}})
	if err != nil {
		return fmt.Errorf("make it the component's: %w", err)
	}
	p.Target.Cache.Note(live)
	m.item.UID, m.did = string(live.GetUID()), Updated
	return nil
}

// release gives up an object: it stays, without our label, annotations, finalizer and field ownership.
func (p *pass) release(ctx context.Context, m *member) error {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found || !p.owns(m, live) {
		m.forgotten = true
		return nil
	}
	now, err := p.Target.Client.Get(ctx, ref(m.item))
	if err == nil && now.GetUID() == live.UID {
		live.Version = now.GetResourceVersion()
		owner := []string{desired.OwnerKey(p.Name)}
		err = p.Target.Client.Release(ctx, now, owner, append(owner, desired.DigestKey(p.Name), desired.HintsKey(p.Name), desired.HealthKey(p.Name), handedKey(p.Name), prune.ReleaseKey(p.Name)), []string{p.Name + "/finalizer", p.Name})
	}
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, apply.ErrReplaced) && !p.abandoned(m) {
		return err
	}
	p.Target.Cache.NoteGone(liveKey(m.item), live.Version)
	m.forgotten = true
	return nil
}

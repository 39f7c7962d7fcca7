package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// leave deletes a member that is no longer wanted.
func (p *pass) leave(ctx context.Context, m *member) error {
	if why := p.heldBy(); why != "" {
		m.held = why
		return nil
	}
	m.item.Phase = api.PhaseDeleting
	return p.delete(ctx, m)
}

// delete deletes the object of a member.
func (p *pass) delete(ctx context.Context, m *member) error {
	if m.defines() {
		return p.deleteDefinition(ctx, m)
	}
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found {
		return nil
	}
	return p.deleteAs(ctx, m, live.UID, live.Version)
}

// deleteAs deletes the object of a member as it was seen. If somebody wrote to it meanwhile, it is looked
// at again: it may be another's now.
func (p *pass) deleteAs(ctx context.Context, m *member, uid types.UID, version string) error {
	version, err := p.unhold(ctx, m, uid, version)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		left, err := p.Target.Client.Delete(ctx, ref(m.item), uid, version)
		if err == nil {
			m.did = Deleted
		}
		if err == nil && left != nil {
			p.Target.Cache.Note(left)
			return nil
		}
		if apierrors.IsConflict(err) && try < attempts && !m.defines() {
			now, failed := p.Target.Client.Get(ctx, ref(m.item))
			if failed == nil && now.GetUID() == uid && p.ownsRead(m, now) {
				version = now.GetResourceVersion()
				continue
			}
			if err = failed; apierrors.IsNotFound(failed) {
				err = nil
			}
		}
		if err == nil {
			p.Target.Cache.NoteGone(liveKey(m.item), version)
		}
		return err
	}
}

// unhold takes off the finalizer that component-operator-runtime puts on definitions, and returns the version after that.
func (p *pass) unhold(ctx context.Context, m *member, uid types.UID, version string) (string, error) {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	if !found || live.UID != uid || !slices.Contains(live.Finalizers, p.Name) {
		return version, nil
	}
	left := slices.DeleteFunc(slices.Clone(live.Finalizers), func(f string) bool { return f == p.Name })
	now, err := p.Target.Client.Patch(ctx, ref(m.item), map[string]any{"metadata": map[string]any{
		"uid": uid, "resourceVersion": version, "finalizers": left,
	}})
	if err != nil {
		return "", fmt.Errorf("remove the finalizer %s of %s: %w", p.Name, ref(m.item), err)
	}
	return now.GetResourceVersion(), nil
}

// ownerOf returns the owner annotation of an object.
func (p *pass) ownerOf(o metav1.Object) string { return o.GetAnnotations()[desired.OwnerKey(p.Name)] }

// wrote reports whether the operator wrote to an object. It did not write to a copy made by hand.
func (p *pass) wrote(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == p.Name })
}

// inspect looks at members that are to go and do not have the UID that is recorded. An object that
// somebody else created again is not deleted, even if it got our annotations by being copied. One that the
// operator itself created again carries its mark in managedFields, which a copy made by hand does not. So does one of
// which no UID is recorded.
func (p *pass) inspect(ctx context.Context) {
	for _, m := range p.members {
		live, found := p.Target.Cache.Get(liveKey(m.item))
		if m.wanted != nil || !found || m.item.UID == string(live.UID) || !p.owns(m, live) {
			continue
		}
		now, err := p.Target.Client.Get(ctx, ref(m.item))
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			m.unobserved, m.failed = err, fmt.Errorf("observe %s: %w", ref(m.item), err)
		case !p.wrote(now):
			m.foreign = true
		}
	}
}

// abandonKey is the annotation of a component that names dependents which it gives up for good.
func abandonKey(name string) string { return name + "/abandon" }

// abandoned reports whether the component gives up a member that is to go. It is named by its key, or by
// kind and name.
func (p *pass) abandoned(m *member) bool {
	for key := range strings.SplitSeq(p.c.Annotations[abandonKey(p.Name)], ",") {
		if key = strings.TrimSpace(key); key == m.item.Key() || key == m.item.Kind+"/"+m.item.Name {
			return m.wanted == nil
		}
	}
	return false
}

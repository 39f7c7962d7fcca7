package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// attempts is how often a pass tries to write an object that others create and delete meanwhile.
const attempts = 3

// unwatched is when an object is looked at again that nothing wakes the component for.
const unwatched = 5 * time.Second

// soon is when a pass follows one whose record has to be durable first.
const soon = time.Millisecond

// create creates an object, or takes over the one that exists.
func (p *pass) create(ctx context.Context, m *member) error {
	if err := p.use(ctx, m); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := p.createOnce(ctx, m)
		if !errors.Is(err, apply.ErrReplaced) || try == attempts {
			return err
		}
	}
}

// use has what is created watched, so that its events are seen.
func (p *pass) use(ctx context.Context, m *member) error {
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	return p.Target.Cache.Use(waiting, p.user(), ref(m.item).GroupVersionKind, m.item.Namespace)
}

// createOnce is create as long as nobody interferes. The error is [apply.ErrReplaced] if the object that
// was in the way is gone.
func (p *pass) createOnce(ctx context.Context, m *member) error {
	live, err := p.post(ctx, m)
	if apply.MissingNamespace(err) {
		if err = p.createNamespace(ctx, m, err); err == nil {
			live, err = p.post(ctx, m)
		}
	}
	if err == nil {
		p.note(m, live)
		m.did = Created
		return nil
	}
	if !errors.Is(err, apply.ErrExists) {
		return err
	}
	live, err = p.Target.Client.Get(ctx, ref(m.item))
	if apierrors.IsNotFound(err) {
		return apply.ErrReplaced
	}
	if err != nil {
		return err
	}
	return p.adopt(ctx, m, live)
}

// post sends the request that creates an object.
func (p *pass) post(ctx context.Context, m *member) (*unstructured.Unstructured, error) {
	manifest := m.manifest()
	if m.wanted.Initial != nil {
		manifest = m.lasting(m.wanted.Initial)
	}
	create := p.Target.Client.Create
	if m.item.UpdatePolicy == api.UpdatePolicyReplace {
		create = p.Target.Client.Post
	}
	live, err := create(ctx, manifest)
	if err == nil && m.wanted.Initial != nil {
		return p.Target.Client.Relinquish(ctx, live, m.wanted.Ignored)
	}
	return live, err
}

// createNamespace creates the namespace of an object, which is missing. It is nobody's afterwards.
func (p *pass) createNamespace(ctx context.Context, m *member, missing error) error {
	if ns := p.members[graph.Key("/Namespace//"+m.item.Namespace)]; ns != nil {
		return missing
	}
	if p.c.Namespaces == api.NamespacePolicyDoNotCreate {
		return fmt.Errorf("namespace %s does not exist, and the operator does not create namespaces; create it", m.item.Namespace)
	}
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	ns.SetName(m.item.Namespace)
	if _, err := p.Target.Client.Post(ctx, ns); err != nil && !errors.Is(err, apply.ErrExists) {
		return fmt.Errorf("create namespace %s: %w", m.item.Namespace, err)
	}
	return nil
}

// adopt takes over an object that exists, if it is the component's own or its policy allows it.
func (p *pass) adopt(ctx context.Context, m *member, live *unstructured.Unstructured) error {
	owner := p.ownerOf(live)
	ours := p.ownsRead(m, live)
	switch {
	case live.GetDeletionTimestamp() != nil:
		m.refused, m.again = "cannot be created while an older object of that name is being deleted", unwatched
		return nil
	case ours:
		return p.write(ctx, m, apply.SeenIn(live), false)
	}
	id, operator := desired.OtherOwner(live.GetAnnotations(), p.Name, m.item.Key())
	if owner == "" && id != "" && m.item.AdoptionPolicy != api.AdoptionPolicyAlways {
		m.refused = fmt.Sprintf("exists and belongs to %s of the operator %s; set %s/adoption-policy: always to adopt it", id, operator, p.Name)
		return nil
	}
	if release := api.HelmReleaseOf(live.GetAnnotations()); owner == "" && release != "" && m.item.AdoptionPolicy != api.AdoptionPolicyAlways &&
		release != api.HelmReleaseOf(m.wanted.Manifest.GetAnnotations()) {
		m.refused = fmt.Sprintf("exists and belongs to the Helm release %s; set %s/adoption-policy: always, or remove its annotation %s, to adopt it",
			release, p.Name, api.AnnotationHelmReleaseName)
		return nil
	}
	if p.adoptable(m, owner) {
		if m.item.UpdatePolicy == api.UpdatePolicyRecreate && projection.EndsByItself(kindOf(m.item)) { // it would not run, which is what it is for
			if _, err := p.Target.Client.Delete(ctx, ref(m.item), live.GetUID(), ""); err != nil {
				return err
			}
			return apply.ErrReplaced
		}
		return p.write(ctx, m, apply.SeenIn(live), true)
	}
	m.refused = p.refusal(m, owner)
	return nil
}

// adoptable reports whether the policy of a member allows to take over an object with an owner, or
// without one.
func (p *pass) adoptable(m *member, owner string) bool {
	switch m.item.AdoptionPolicy {
	case api.AdoptionPolicyAlways:
		return true
	case api.AdoptionPolicyIfUnowned:
		return owner == ""
	case api.AdoptionPolicyNever:
	}
	return false
}

// refusal says why an object is not taken over.
func (p *pass) refusal(m *member, owner string) string {
	if owner == "" {
		return fmt.Sprintf("exists and has no owner; set %s/adoption-policy: if-unowned to adopt it", p.Name)
	}
	if owner == p.c.Owner {
		return fmt.Sprintf("exists and has the owner annotation of this component, which did not make it; set %s/adoption-policy: always to adopt it", p.Name)
	}
	id, uid, _, _ := desired.ParseOwner(owner)
	if p.namesake(owner) {
		return fmt.Sprintf("exists and belongs to an earlier component of this name with UID %s; if that component was restored from a backup as this one, "+
			"set %s: %s on it, or else set %s/adoption-policy: always on the object", uid, restoredKey(p.Name), uid, p.Name)
	}
	if p.sibling(id) && m.item.AdoptionPolicy != api.AdoptionPolicyNever {
		return fmt.Sprintf("exists and belongs to %s; it is taken over when that component no longer renders it; set %s/adoption-policy: always to adopt it now", id, p.Name)
	}
	return fmt.Sprintf("exists and belongs to %s; set %s/adoption-policy: always to adopt it", id, p.Name)
}

// update brings an object to its manifest.
func (p *pass) update(ctx context.Context, m *member) error {
	live, found := p.Target.Cache.Get(liveKey(m.item))
	switch {
	case !found && m.ended(): // it went meanwhile
		return nil
	case !found:
		return p.create(ctx, m)
	}
	err := p.write(ctx, m, apply.Seen{UID: live.UID, Version: live.Version, Finalizers: live.Finalizers, PlainStatus: live.PlainStatus}, false)
	if errors.Is(err, apply.ErrReplaced) {
		if p.Target.Cache.NoteGone(liveKey(m.item), live.Version); m.ended() {
			return nil
		}
		return p.create(ctx, m)
	}
	return err
}

// write changes an object that exists.
func (p *pass) write(ctx context.Context, m *member, seen apply.Seen, adopt bool) error {
	live, err := p.send(ctx, m, seen, adopt)
	if conflict, ok := errors.AsType[*apply.ConflictError](err); ok {
		return fmt.Errorf("%w; remove the fields from the manifest, or set %s/conflict-policy: force to take them over", conflict, p.Name)
	}
	if apierrors.IsInvalid(err) {
		return p.immutable(ctx, m, seen, err)
	}
	if err == nil {
		p.note(m, live)
		m.did = Updated
	}
	return err
}

// send sends the request that changes an object.
func (p *pass) send(ctx context.Context, m *member, seen apply.Seen, adopt bool) (*unstructured.Unstructured, error) {
	if len(m.wanted.Ignored) > 0 && (adopt || !m.corrects()) {
		now, err := p.relinquish(ctx, m, seen)
		if err != nil {
			return nil, err
		}
		seen = apply.SeenIn(now)
	}
	live, found := p.Target.Cache.Get(liveKey(m.item))
	leave := slices.Concat(m.wanted.Ignored, m.wanted.Left)
	o := apply.Options{
		UID: seen.UID, Leave: leave, Adopt: adopt, Yield: m.item.ConflictPolicy == api.ConflictPolicyFail,
		Reset: found && live.Reset && live.Digest != m.wanted.Item.Digest,
	}
	switch m.item.UpdatePolicy {
	case api.UpdatePolicyReplace:
		return p.Target.Client.Replace(ctx, m.manifest(), seen, leave...)
	case api.UpdatePolicySsaOverride, api.UpdatePolicyRecreate:
		o.Override = true
	case api.UpdatePolicySsaMerge:
	}
	return p.Target.Client.Apply(ctx, m.manifest(), o)
}

// relinquish gives up the ignored fields of an object that were applied before they were ignored. Without
// that, they would be removed with the next manifest. It returns the object as it is then.
func (p *pass) relinquish(ctx context.Context, m *member, seen apply.Seen) (*unstructured.Unstructured, error) {
	live, err := p.Target.Client.Get(ctx, ref(m.item))
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != seen.UID {
		return nil, apply.ErrReplaced
	}
	if err != nil {
		return nil, err
	}
	return p.Target.Client.Relinquish(ctx, live, m.wanted.Ignored)
}

// immutable has an object created again if nothing but that brings it to its manifest and its policy
// allows it. refused is the API server's answer to the update.
func (p *pass) immutable(ctx context.Context, m *member, seen apply.Seen, refused error) error {
	if m.item.ImmutablePolicy != api.ImmutablePolicyRecreate {
		return refused
	}
	proven, err := p.Target.Client.Immutable(ctx, m.manifest(), seen)
	switch {
	case err != nil:
		return errors.Join(refused, err)
	case !proven:
		return refused
	case apply.HoldsData(ref(m.item).GroupKind()) && !m.wanted.AcceptDataLoss:
		return fmt.Errorf(`%w; to delete and create it again loses what it holds: set %s/accept-data-loss: "true" to allow that`, refused, p.Name)
	}
	m.recreate = true
	return nil
}

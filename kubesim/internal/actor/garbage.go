package actor

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// collector is the garbage collector. It decides by what is stored, as the real one does when
// its view of the cluster is complete.
type collector struct {
	*graph
	caller
}

// wants returns what is to be done about one object.
func (c collector) wants(n *node) []write {
	switch {
	case n.kind.Kind.Kind == "Event": // the real one ignores them too
		return nil
	case n.deleting() && n.has(metav1.FinalizerOrphanDependents):
		return c.orphan(n)
	case n.deletingDependents():
		return c.awaitDependents(n)
	case n.deleting() || len(n.OwnerReferences) == 0:
		return nil
	}
	return c.collect(n)
}

// orphan frees the dependents of an owner that goes without them, then lets it go.
func (c collector) orphan(owner *node) []write {
	var writes []write
	for dep := range c.dependentsOf(owner) {
		writes = append(writes, write{
			what: fmt.Sprintf("free %s from %s, which goes without it", dep, owner),
			do:   func(ctx context.Context) error { return c.removeOwners(ctx, dep, []types.UID{owner.UID}) },
		})
	}
	if writes == nil {
		writes = []write{c.finalize(owner, metav1.FinalizerOrphanDependents)}
	}
	return writes
}

// awaitDependents lets an owner go once nothing blocks it. The deletion of what does block it
// is the dependents' own matter.
func (c collector) awaitDependents(owner *node) []write {
	for dep := range c.dependentsOf(owner) {
		for _, ref := range dep.OwnerReferences {
			if ref.UID == owner.UID && blocks(ref) {
				return nil
			}
		}
	}
	return []write{c.finalize(owner, metav1.FinalizerDeleteDependents)}
}

func (c collector) finalize(n *node, finalizer string) write {
	return write{
		what: fmt.Sprintf("remove finalizer %s of %s", finalizer, n),
		do:   func(ctx context.Context) error { return c.removeFinalizer(ctx, n, finalizer) },
	}
}

// collect deletes an object none of whose owners holds it, or drops the references that no
// longer count.
func (c collector) collect(n *node) []write {
	solid, dangling, waiting, ok := c.classify(n)
	switch {
	case !ok || solid > 0 && len(dangling)+len(waiting) == 0:
		return nil
	case solid > 0:
		return []write{{
			what: fmt.Sprintf("drop owners of %s that are gone", n),
			do:   func(ctx context.Context) error { return c.removeOwners(ctx, n, append(dangling, waiting...)) },
		}}
	case len(waiting) > 0 && len(c.dependents[n.UID]) > 0:
		return []write{c.deleteForeground(n)}
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case n.has(metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case n.has(metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	why := "whose owner is gone"
	if len(waiting) > 0 {
		why = "whose owner waits for it"
	}
	return []write{{
		what: fmt.Sprintf("delete %s, %s", n, why),
		do:   func(ctx context.Context) error { return c.delete(ctx, n, policy) },
	}}
}

// deleteForeground deletes an object that has dependents itself and whose owner waits. If one
// of them waits too there may be a circle, so n stops blocking its owners first.
func (c collector) deleteForeground(n *node) write {
	circle := false
	for dep := range c.dependentsOf(n) {
		circle = circle || dep.deletingDependents()
	}
	if circle && slices.ContainsFunc(n.OwnerReferences, blocks) {
		return write{
			what: fmt.Sprintf("let %s no longer block its owners", n),
			do:   func(ctx context.Context) error { return c.unblock(ctx, n) },
		}
	}
	return write{
		what: fmt.Sprintf("delete %s and its dependents, whose owner waits for it", n),
		do:   func(ctx context.Context) error { return c.delete(ctx, n, metav1.DeletePropagationForeground) },
	}
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// classify counts the owners that hold n and lists those that are gone and those that wait
// for n to go. It is not ok if one is of a kind that is not served, or in a namespace though
// n is not: then the real collector leaves n alone.
func (c collector) classify(n *node) (solid int, dangling, waiting []types.UID, ok bool) {
	for _, ref := range n.OwnerReferences {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			return 0, nil, nil, false
		}
		kind, served := c.kindNamed(gv.WithKind(ref.Kind))
		if !served || kind.Namespaced && n.Namespace == "" {
			return 0, nil, nil, false
		}
		owner, exists := c.nodes[kind.Key(n.Namespace, ref.Name)]
		switch {
		case !exists || owner.UID != ref.UID:
			dangling = append(dangling, ref.UID)
		case owner.deletingDependents():
			waiting = append(waiting, ref.UID)
		default:
			solid++
		}
	}
	return solid, dangling, waiting, true
}

func (c collector) removeOwners(ctx context.Context, n *node, owners []types.UID) error {
	var remain []metav1.OwnerReference
	for _, ref := range n.OwnerReferences {
		if !slices.Contains(owners, ref.UID) {
			remain = append(remain, ref)
		}
	}
	return c.patchOwners(ctx, n, remain, nil, owners)
}

func (c collector) unblock(ctx context.Context, n *node) error {
	var all, changed []metav1.OwnerReference
	for _, ref := range n.OwnerReferences {
		blocked := blocks(ref)
		ref.BlockOwnerDeletion = new(false)
		all = append(all, ref)
		if blocked {
			changed = append(changed, ref)
		}
	}
	return c.patchOwners(ctx, n, all, changed, nil)
}

package children

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/loop"
)

// prune deletes children that are not wanted any more.
func (p *pass[T]) prune(ctx context.Context) {
	certain := false
	for _, k := range p.kinds {
		found, err := cached.List(ctx, p.cache, p.scheme, k.empty, client.MatchingFields{ownerIndex + p.names.prefix: string(p.owner.uid)})
		if err != nil {
			p.fail("ChildrenUnknown", fmt.Errorf("list the children in the cache: %w", err))
			return
		}
		for _, obj := range found {
			r := k.refOf(client.ObjectKeyFromObject(obj))
			if p.wanted[r] || !p.names.belongs(obj, p.owner.uid) || p.memory.gone(obj.GetUID()) {
				continue
			}
			if !certain { // with an old copy of its owner, a child would be deleted that is wanted by now
				if err := p.run.Certain(ctx); err != nil {
					p.fail("", err)
					return
				}
				certain = true
			}
			p.remove(ctx, r, obj)
		}
	}
}

// remove deletes a child that is not wanted any more.
func (p *pass[T]) remove(ctx context.Context, r ref, obj client.Object) {
	gone, err := p.delete(ctx, r, p.owner, obj)
	switch {
	case err != nil:
		p.fail("ChildNotDeleted", fmt.Errorf("delete %s, which is not wanted any more: %w", r, err))
	case !gone:
		p.wait(r, "is being deleted")
	}
}

// delete deletes a child and then removes our finalizer from it. It reports whether the child is gone.
func (w *wiring[T]) delete(ctx context.Context, r ref, owner owning, obj client.Object) (gone bool, err error) {
	if obj.GetDeletionTimestamp() == nil {
		live, err := w.part(r, owner, obj, func() (*unstructured.Unstructured, error) { return w.client.Delete(ctx, r, obj.GetUID(), "") })
		switch {
		case apierrors.IsConflict(err): // the name has another object by now
			return true, nil
		case err != nil:
			return false, err
		case live == nil:
			return true, nil
		}
		obj = live
	}
	return w.release(ctx, r, owner, obj)
}

// release removes our finalizer from a child. It reports whether the child is gone.
func (w *wiring[T]) release(ctx context.Context, r ref, owner owning, obj client.Object) (gone bool, err error) {
	for holds(obj, w.names.finalizer()) {
		rest := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == w.names.finalizer() })
		live, err := w.part(r, owner, obj, func() (*unstructured.Unstructured, error) {
			return w.client.Patch(ctx, r, map[string]any{"metadata": map[string]any{
				"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": rest,
			}})
		})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err == nil:
			return live == nil, nil
		case !apierrors.IsConflict(err):
			return false, err
		}
		uid := obj.GetUID()
		now, err := w.client.Get(ctx, r) // somebody wrote to it, or it has another uid by now
		if apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		obj = now
	}
	return false, nil
}

// part sends a write that may end a child, and notes the answer, so that it wakes nobody. It returns nil if the child is
// gone.
func (w *wiring[T]) part(r ref, owner owning, obj client.Object, send func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	begun := w.memory.begin(r, owner.uid)
	live, err := send()
	var now *written
	var ended types.UID
	switch {
	case err != nil:
	case gone(live):
		live, ended = nil, obj.GetUID()
	default:
		now = &written{uid: live.GetUID(), version: live.GetResourceVersion(), before: obj.GetResourceVersion(), at: time.Now()}
	}
	if w.memory.end(r, begun, now, ended) {
		w.waker.Objects(owner.NamespacedName)
	}
	return live, err
}

// gone reports whether the answer to a write says that nothing is left of an object, as if there were none. A Namespace
// has finalizers in its spec, and a Pod ends after its grace period.
func gone(live *unstructured.Unstructured) bool {
	if live == nil {
		return true
	}
	own, _, err := unstructured.NestedSlice(live.Object, "spec", "finalizers")
	grace := live.GetDeletionGracePeriodSeconds()
	return live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) == 0 && err == nil && len(own) == 0 && (grace == nil || *grace == 0)
}

// cleanup gives up the children of an owner that is being deleted.
func (w *wiring[T]) cleanup(ctx context.Context, obj T) loop.CleanupOutcome {
	switch left, err := w.letGo(ctx, obj); {
	case err != nil:
		return loop.CleanupFailed(err)
	case left > 0:
		return loop.KeepUntilEvent().Because("ChildrenTerminating")
	}
	return loop.CleanedUp()
}

// letGo releases protected children and, if their owner is being deleted, deletes those that garbage collection does not
// reach. It returns how many of these there are still.
func (w *wiring[T]) letGo(ctx context.Context, obj T) (left int, err error) {
	owner := owning{client.ObjectKeyFromObject(obj), obj.GetUID()}
	if obj.GetDeletionTimestamp() != nil {
		w.memory.keep(owner, nil)
	}
	for _, k := range w.kinds {
		all, err := w.childrenOf(ctx, k, owner)
		if err != nil {
			return 0, fmt.Errorf("list the children that are %s objects: %w", k.gvk.Kind, err)
		}
		for _, child := range all {
			if !w.names.belongs(child, owner.uid) || w.memory.gone(child.GetUID()) {
				continue
			}
			r := k.refOf(client.ObjectKeyFromObject(child))
			done, err := w.leave(ctx, r, obj, child)
			if err != nil {
				return 0, fmt.Errorf("clean up %s: %w", r, err)
			}
			if !done {
				left++
			}
		}
	}
	return left, nil
}

// childrenOf lists the children of a kind. If there are some that nobody else would delete, the list is read from the API
// server, because what the cache does not show yet would stay. Of other kinds, the finalizer of an earlier version of the
// operator may be left, which the cache shows.
func (w *wiring[T]) childrenOf(ctx context.Context, k kind, owner owning) (all []client.Object, err error) {
	if !k.finalized {
		return cached.List(ctx, w.cache, w.scheme, k.empty, client.MatchingFields{ownerIndex + w.names.prefix: string(owner.uid)})
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	options := []client.ListOption{client.MatchingLabels{w.names.owner(): string(owner.uid)}}
	if k.namespaced && !k.elsewhere && owner.Namespace != "" {
		options = append(options, client.InNamespace(owner.Namespace))
	}
	if err := w.live.List(ctx, list, options...); err != nil {
		return nil, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// leave gives up a child, and reports whether its owner need not wait for it. Garbage collection deletes what has an owner
// reference, and nothing is deleted if whoever deletes the owner wants to keep what it owns.
func (w *wiring[T]) leave(ctx context.Context, r ref, obj T, child client.Object) (done bool, err error) {
	owner := owning{client.ObjectKeyFromObject(obj), obj.GetUID()}
	reached, deleting := controlled(child, owner.uid), obj.GetDeletionTimestamp() != nil
	if deleting && !reached && !holds(obj, metav1.FinalizerOrphanDependents) {
		return w.delete(ctx, r, owner, child)
	}
	_, err = w.release(ctx, r, owner, child)
	return reached || deleting, err
}

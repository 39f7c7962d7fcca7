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

// cleanup releases protected children and deletes those that garbage collection does not reach. The lists are read from
// the API server, because what the cache does not show yet would stay.
func (w *wiring[T]) cleanup(ctx context.Context, obj T) loop.CleanupOutcome {
	owner := owning{client.ObjectKeyFromObject(obj), obj.GetUID()}
	w.memory.keep(owner, nil)
	left := 0
	for _, k := range w.kinds {
		if !k.finalized {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		options := []client.ListOption{client.MatchingLabels{w.names.owner(): string(owner.uid)}}
		if k.namespaced && !k.elsewhere && obj.GetNamespace() != "" {
			options = append(options, client.InNamespace(obj.GetNamespace()))
		}
		if err := w.live.List(ctx, list, options...); err != nil {
			return loop.CleanupFailed(fmt.Errorf("list the children that are %s objects: %w", k.gvk.Kind, err))
		}
		for i := range list.Items {
			child := &list.Items[i]
			if !w.names.belongs(child, owner.uid) {
				continue
			}
			gone, err := w.leave(ctx, k.refOf(client.ObjectKeyFromObject(child)), owner, child, holds(obj, metav1.FinalizerOrphanDependents))
			if err != nil {
				return loop.CleanupFailed(fmt.Errorf("clean up %s: %w", k.refOf(client.ObjectKeyFromObject(child)), err))
			}
			if !gone {
				left++
			}
		}
	}
	if left > 0 {
		return loop.KeepUntilEvent().Because("ChildrenTerminating")
	}
	return loop.CleanedUp()
}

// leave gives up a child whose owner is deleted, and reports whether there is nothing to wait for. Garbage collection
// deletes what has an owner reference, and nothing is deleted if whoever deletes the owner wants to keep what it owns.
func (w *wiring[T]) leave(ctx context.Context, r ref, owner owning, child client.Object, orphan bool) (done bool, err error) {
	if orphan || controlled(child, owner.uid) {
		_, err = w.release(ctx, r, owner, child)
		return true, err
	}
	return w.delete(ctx, r, owner, child)
}

package loop

import (
	"context"
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watchSharing keeps an index of what objects stand for, and visits those that share a key
// with an object that goes or lets go of it. Nothing of it costs a request.
func (c *Controller[T]) watchSharing(mgr manager.Manager, ctrl controller.Controller, indexer Indexer[T]) error {
	keys := func(o client.Object) []string {
		obj, ok := o.(T)
		if !ok {
			return nil
		}
		return c.keysOf(indexer, obj)
	}
	//nolint:forbidigo // wiring happens before there is a context to inherit
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), c.newObject(), c.sharingIndex(), keys); err != nil {
		return fmt.Errorf("index %s by what objects stand for: %w", c.gvk.Kind, err)
	}
	wakes := handler.TypedFuncs[T, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			kept := keys(e.ObjectNew)
			c.wakeSharing(ctx, e.ObjectNew, slices.DeleteFunc(keys(e.ObjectOld), func(k string) bool { return slices.Contains(kept, k) }), q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q queue) {
			c.wakeSharing(ctx, e.Object, keys(e.Object), q)
		},
	}
	if err := ctrl.Watch(source.Kind(mgr.GetCache(), c.newObject(), wakes)); err != nil {
		return fmt.Errorf("watch %s: %w", c.gvk.Kind, err)
	}
	return nil
}

func (c *Controller[T]) sharingIndex() string { return "trimtab.dev/" + c.name + "-stands-for" }

// keysOf asks the author what obj stands for. It runs in the cache, where a panic would end
// the process; the object's own pass meets the same mistake where it is told.
func (c *Controller[T]) keysOf(indexer Indexer[T], obj T) (keys []string) {
	if err := guard(func() { keys = indexer.IndexKeys(obj) }); err != nil {
		c.log.Error(err, "cannot tell what an object stands for: IndexKeys did not return", "object", client.ObjectKeyFromObject(obj), "stack", stackOf(err))
		return nil
	}
	return keys
}

// wakeSharing visits the other objects that stand for one of keys.
func (c *Controller[T]) wakeSharing(ctx context.Context, gone T, keys []string, q queue) {
	for _, key := range keys {
		others, err := c.sharing(ctx, key)
		if err != nil {
			c.log.Error(err, "cannot tell who waits for what an object stood for; the next visit will notice", "object", client.ObjectKeyFromObject(gone))
			continue
		}
		for _, o := range others {
			if o.GetUID() == gone.GetUID() {
				continue
			}
			if k := client.ObjectKeyFromObject(o); c.memory.event(k) { // else all are visited once this process leads
				q.Add(reconcile.Request{NamespacedName: k})
			}
		}
	}
}

// sharing is [Run.Sharing].
func (c *Controller[T]) sharing(ctx context.Context, key string) ([]T, error) {
	list, err := c.newList()
	if err != nil {
		return nil, err
	}
	if err := c.client.List(ctx, list, client.MatchingFields{c.sharingIndex(): key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("ask the cache who shares %q: %w", key, err)
	}
	var out []T
	err = apimeta.EachListItem(list, func(o runtime.Object) error {
		if obj, ok := o.(T); ok {
			out = append(out, obj)
		}
		return nil
	})
	return out, err
}

package loop

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// watchSharing keeps an index of the keys of objects, and queues those that share a key with an
// object that goes or no longer has the key.
func (c *Controller[T]) watchSharing(mgr manager.Manager, ctrl controller.Controller, indexer Indexer[T]) error {
	keys := func(obj T) []string { return c.indexKeys(indexer, obj) }
	if err := c.cached().Index(mgr.GetFieldIndexer(), c.sharingIndex(), keys); err != nil {
		return fmt.Errorf("index %s by IndexKeys: %w", c.gvk.Kind, err)
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
	if err := ctrl.Watch(source.Kind(mgr.GetCache(), cached.New[T](), wakes)); err != nil {
		return fmt.Errorf("watch %s: %w", c.gvk.Kind, err)
	}
	return nil
}

func (c *Controller[T]) sharingIndex() string { return "trimtab.dev/" + c.name + "-keys" }

// cached are the objects that the cache holds.
func (c *Controller[T]) cached() cached.Objects[T] {
	return cached.Objects[T]{Scheme: c.scheme, Reader: c.client}
}

// indexKeys asks the author for the keys of obj. It runs in the cache, where a panic would end
// the process; the object's own pass meets the same mistake and reports it.
func (c *Controller[T]) indexKeys(indexer Indexer[T], obj T) (keys []string) {
	if err := guard.Run(indexer, code, "IndexKeys", func() { keys = indexer.IndexKeys(obj) }); err != nil {
		c.log.Error(err, "an object has no keys, because IndexKeys did not return", "object", client.ObjectKeyFromObject(obj), "stack", guard.Stack(err))
		return nil
	}
	return keys
}

// wakeSharing queues the other objects that have one of keys.
func (c *Controller[T]) wakeSharing(ctx context.Context, gone T, keys []string, q queue) {
	for _, key := range keys {
		others, err := c.sharing(ctx, key)
		if err != nil {
			c.log.Error(err, "cannot list the objects that share a key; their next passes will see that it is free", "object", client.ObjectKeyFromObject(gone))
			continue
		}
		for _, o := range others {
			if o.GetUID() == gone.GetUID() {
				continue
			}
			if k := client.ObjectKeyFromObject(o); c.memory.event(k) { // otherwise all are queued once this process leads
				q.Add(reconcile.Request{NamespacedName: k})
			}
		}
	}
}

// sharing is [Run.Sharing].
func (c *Controller[T]) sharing(ctx context.Context, key string) ([]T, error) {
	if c.sharers != nil {
		return c.sharers(ctx, key)
	}
	found, err := c.cached().Under(ctx, c.sharingIndex(), key)
	if err != nil {
		return nil, fmt.Errorf("list the objects with key %q in the cache: %w", key, err)
	}
	return found, nil
}

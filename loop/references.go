package loop

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/trigger"
)

// watchReference wakes objects when one that they name changes. The cache's own index
// answers who names it, so a name that an object no longer holds stops waking it.
func (c *Controller[T]) watchReference(mgr manager.Manager, ctrl controller.Controller, n int, ref trigger.Reference[T]) error {
	index := fmt.Sprintf("trimtab.dev/%s-reference-%d", c.name, n)
	keys := func(o client.Object) []string {
		obj, ok := o.(T)
		if !ok {
			return nil
		}
		return c.named(ref, obj)
	}
	//nolint:forbidigo // wiring happens before there is a context to inherit
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), c.newObject(), index, keys); err != nil {
		return fmt.Errorf("index %s by the %T it names: %w", c.gvk.Kind, ref.To, err)
	}
	wakes := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, to client.Object) []reconcile.Request {
		return c.naming(ctx, index, client.ObjectKeyFromObject(to))
	})
	matters := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
			return false
		}
		return ref.Changed == nil || ref.Changed(e.ObjectOld, e.ObjectNew)
	}}
	return ctrl.Watch(source.Kind(mgr.GetCache(), ref.To, wakes, matters))
}

// named asks the author which objects obj refers to. It runs in the cache, where a panic
// would end the process: an object whose references cannot be told has none, and its own
// pass meets the same mistake where it is told.
func (c *Controller[T]) named(ref trigger.Reference[T], obj T) (keys []string) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error(fmt.Errorf("%v", r), "cannot tell what an object refers to: Names panicked", "object", client.ObjectKeyFromObject(obj))
			keys = nil
		}
	}()
	for _, key := range ref.Names(obj) {
		keys = append(keys, key.String())
	}
	return keys
}

// naming lists the objects that name key, by the index.
func (c *Controller[T]) naming(ctx context.Context, index string, key types.NamespacedName) []reconcile.Request {
	list, err := c.newList()
	if err == nil {
		err = c.client.List(ctx, list, client.MatchingFields{index: key.String()})
	}
	if err != nil {
		c.log.Error(err, "cannot tell who refers to an object; the next visit will notice its change", "object", key)
		return nil
	}
	var out []reconcile.Request
	for _, k := range keysOf(list) {
		c.memory.event(k)
		out = append(out, reconcile.Request{NamespacedName: k})
	}
	return out
}

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

// references are the sources of that kind, whether they were given as values or by pointer.
func references[T client.Object](sources []trigger.Source[T]) []trigger.Reference[T] {
	var out []trigger.Reference[T]
	for _, s := range sources {
		switch ref := s.(type) {
		case trigger.Reference[T]:
			out = append(out, ref)
		case *trigger.Reference[T]:
			if ref == nil {
				ref = &trigger.Reference[T]{}
			}
			out = append(out, *ref)
		}
	}
	return out
}

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
		return c.matters(ref, e.ObjectOld, e.ObjectNew)
	}}
	return ctrl.Watch(source.Kind(mgr.GetCache(), ref.To, wakes, matters))
}

// matters asks the author whether an update of an object referred to can matter. It runs in
// the cache, where a panic would end the process: what cannot be told matters.
func (c *Controller[T]) matters(ref trigger.Reference[T], before, after client.Object) bool {
	matters := true
	if ref.Changed == nil {
		return matters
	}
	if err := guard(func() { matters = ref.Changed(before, after) }); err != nil {
		c.log.Error(err, "cannot tell whether a change matters: Changed did not return", "object", client.ObjectKeyFromObject(after), "stack", stackOf(err))
	}
	return matters
}

// unknown is the key under which the index has objects of which nobody could tell what they refer
// to. It is no name.
const unknown = "?"

// named asks the author which objects obj refers to. It runs in the cache, too, and once for each
// version of obj: one whose references cannot be told is woken by every object, and its own pass
// meets the same mistake where it is told.
func (c *Controller[T]) named(ref trigger.Reference[T], obj T) []string {
	var names []types.NamespacedName
	if err := guard(func() { names = ref.Names(obj) }); err != nil {
		c.log.Error(err, "cannot tell what an object refers to: Names did not return", "object", client.ObjectKeyFromObject(obj), "stack", stackOf(err))
		c.someUnknown.Store(true)
		return []string{unknown}
	}
	keys := make([]string, 0, len(names))
	for _, key := range names {
		keys = append(keys, key.String())
	}
	return keys
}

// naming lists the objects that name key, by the index, and those of which nobody knows.
func (c *Controller[T]) naming(ctx context.Context, index string, key types.NamespacedName) []reconcile.Request {
	found := c.indexed(ctx, index, key.String())
	if c.someUnknown.Load() {
		found = append(found, c.indexed(ctx, index, unknown)...)
	}
	var out []reconcile.Request
	for _, k := range found {
		if c.memory.event(k) { // else all are visited once this process leads
			out = append(out, reconcile.Request{NamespacedName: k})
		}
	}
	return out
}

// indexed lists the objects that an index has under a value.
func (c *Controller[T]) indexed(ctx context.Context, index, value string) []types.NamespacedName {
	list, err := c.newList()
	if err == nil {
		err = c.client.List(ctx, list, client.MatchingFields{index: value})
	}
	if err != nil {
		c.log.Error(err, "cannot tell who refers to an object; the next visit will notice its change", "object", value)
		return nil
	}
	return keysOf(list)
}

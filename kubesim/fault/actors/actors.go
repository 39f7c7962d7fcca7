package actors

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// All returns all actors of this package. After each change it is again the first one that has something to do, so
// EndpointSlices know of a Pod before the status of its owner does: an operator that watches only the owner would find older
// ones otherwise, and never look again. Claims are bound before a Pod finds that they are not.
func All() []fault.Actor {
	return []fault.Actor{
		EndpointSlices(), Deployments(), StatefulSets(), DaemonSets(), Jobs(), Claims(), Pods(), LoadBalancers(), Certificates(),
	}
}

// each is an actor that does something with all objects of a kind, one at a time.
func each[T client.Object](name string, list client.ObjectList, act func(ctx context.Context, c client.Client, obj T) error) fault.Actor {
	return fault.Actor{Name: name, Act: func(ctx context.Context, w *fault.World) error {
		all, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return fmt.Errorf("the deep copy of a %T is no list", list)
		}
		if err := w.Client.List(ctx, all); err != nil {
			if meta.IsNoMatchError(err) {
				return nil // its CustomResourceDefinition is not installed
			}
			return err
		}
		return meta.EachListItem(all, func(o runtime.Object) error {
			obj, ok := o.(T)
			if !ok {
				return fmt.Errorf("a list of %T contains a %T", *new(T), o)
			}
			return client.IgnoreNotFound(act(ctx, w.Client, obj)) // another actor's work
		})
	}}
}

// writeStatus writes the status of an object if change changes it.
func writeStatus[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) error {
	before, ok := obj.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("the deep copy of a %T is of another type", obj)
	}
	change(obj)
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	return c.Status().Patch(ctx, obj, client.MergeFrom(before))
}

// numberOf is the number of replicas that a spec wants.
func numberOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

package trigger

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Owned wakes an object when an object that it owns is created, changed or deleted. Objects of the same kind that
// belong to nobody, or to objects of another kind, wake nothing. Package children has these sources for its
// children; use Owned for objects that your own code creates.
type Owned[T client.Object] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Of is an empty object of the kind that is owned. Required.
	Of client.Object
	// Owners returns the names of the objects that obj belongs to besides its controller, which is the owner reference
	// of kind T. It must return at once. Nil, and a panic, mean that there are none.
	Owners func(obj client.Object) []types.NamespacedName
	// News reports whether a change can matter; before is nil for a new object, after for a deleted one. It must
	// return at once. Nil, and a panic, mean that it can.
	News func(before, after client.Object) bool
}

func (Owned[T]) source(T) {}

// Check implements [Source].
func (o Owned[T]) Check() error {
	return checkKind("Of of a trigger.Owned", o.Of)
}

// Watches implements [Source].
func (o Owned[T]) Watches() []client.Object { return []client.Object{o.Of} }

// Needs implements [Source].
func (Owned[T]) Needs() []Need { return nil }

// Attach implements [Source].
func (o Owned[T]) Attach(target Target[T]) error {
	watching, err := o.watching(target)
	if err != nil {
		return err
	}
	return attachWatching(target, o.Name, watching)
}

// fixed implements switchable.
func (Owned[T]) fixed() string { return "" }

// watching implements switchable.
func (o Owned[T]) watching(target Target[T]) (source.SyncingSource, error) {
	mgr := target.Manager
	kind, err := apiutil.GVKForObject(cached.New[T](), mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	mapping, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("the API server does not serve %s; install its CRD first: %w", kind.GroupKind(), err)
	}
	a := &attachedOwned[T]{Owned: o, target: target, kind: kind.GroupKind(), namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	return source.Kind(target.cache(), o.Of, handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { a.changed(q, nil, e.Object, e.IsInInitialList) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				a.changed(q, e.ObjectOld, e.ObjectNew, false)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { a.changed(q, e.Object, nil, false) },
	}), nil
}

// attachedOwned is an Owned of one controller.
type attachedOwned[T client.Object] struct {
	Owned[T]

	target     Target[T]
	kind       schema.GroupKind
	namespaced bool
}

// changed queues whom an object belongs to, and whom it belonged to before.
func (o *attachedOwned[T]) changed(q queue, before, after client.Object, low bool) {
	if !o.matters(before, after) {
		return
	}
	queued := map[types.NamespacedName]bool{}
	for _, obj := range []client.Object{before, after} {
		if obj == nil {
			continue
		}
		for _, key := range o.owners(obj) {
			if queued[key] || !o.target.Event(key) {
				continue
			}
			queued[key] = true
			add(q, key, low)
		}
	}
}

// add queues an object, behind all others if it is low.
func add(q queue, key types.NamespacedName, low bool) {
	request := reconcile.Request{NamespacedName: key}
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok && low {
		p.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
		return
	}
	q.Add(request)
}

func (o *attachedOwned[T]) matters(before, after client.Object) bool {
	matters := true
	if o.News == nil {
		return matters
	}
	if err := guard.Aside(code, "News", func() { matters = o.News(before, after) }); err != nil {
		o.target.Log.Error(err, "a change is taken to matter, because News did not return", "stack", guard.Stack(err))
		return true
	}
	return matters
}

func (o *attachedOwned[T]) owners(obj client.Object) []types.NamespacedName {
	if o.Owners == nil {
		return o.controller(obj)
	}
	var keys []types.NamespacedName
	if err := guard.Aside(code, "Owners", func() { keys = o.Owners(obj) }); err != nil {
		o.target.Log.Error(err, "an object belongs to nobody but its controller, because Owners did not return",
			"object", client.ObjectKeyFromObject(obj), "stack", guard.Stack(err))
	}
	return append(o.controller(obj), keys...)
}

// controller is the object of kind T that controls obj.
func (o *attachedOwned[T]) controller(obj client.Object) []types.NamespacedName {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != o.kind {
		return nil
	}
	key := types.NamespacedName{Name: ref.Name}
	if o.namespaced {
		key.Namespace = obj.GetNamespace()
	}
	return []types.NamespacedName{key}
}

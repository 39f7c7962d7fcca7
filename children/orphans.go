package children

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// A create that a killed process had sent may arrive after another process has cleaned up, and somebody may remove the
// finalizer of an owner by hand. Then nobody is left who would release the children that were created. Orphans are
// protected children, and those without owner reference, whose owner does not exist. If another object has the name of
// the owner, they are left to that: it may be the owner, restored from a backup.

// orphan is an object that may be an orphan.
type orphan struct {
	kind int
	types.NamespacedName
}

type orphans[T client.Object] struct{ *wiring[T] }

type orphanQueue = workqueue.TypedRateLimitingInterface[orphan]

// watchOrphans starts the controller that releases orphans. There can be some of any kind, from an earlier version of the
// operator.
func (c *Controller[T]) watchOrphans(mgr manager.Manager) error {
	w := c.set.wiring
	o := orphans[T]{w}
	var ctrl controller.TypedController[orphan]
	for i, k := range w.kinds {
		if ctrl == nil {
			var err error
			if ctrl, err = newOrphanController(w.names.prefix+"-orphans", mgr, o); err != nil {
				return err
			}
			if err := onEvents(ctrl, mgr, cached.New[T](), orphanEvents{gone: o.ownerGone}); err != nil {
				return err
			}
		}
		add := func(obj client.Object, q orphanQueue) {
			if o.finalized(obj) {
				q.Add(orphan{i, client.ObjectKeyFromObject(obj)})
			}
		}
		if err := onEvents(ctrl, mgr, k.empty, orphanEvents{seen: add}); err != nil {
			return err
		}
	}
	return nil
}

// newOrphanController and onEvents have no type parameter: what has one is compiled once more in each package that has such an
// operator, with all generic code that it calls. Controllers and queues have much of that.
func newOrphanController(name string, mgr manager.Manager, r reconcile.TypedReconciler[orphan]) (controller.TypedController[orphan], error) {
	ctrl, err := controller.NewTyped(name, mgr, controller.TypedOptions[orphan]{
		Reconciler: r, SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation,
	})
	if err != nil {
		return nil, fmt.Errorf("watch for orphans: %w", err)
	}
	return ctrl, nil
}

// orphanEvents are called with an object that is new or is being deleted from now on, and with one that is gone.
type orphanEvents struct {
	seen func(client.Object, orphanQueue)
	gone func(context.Context, client.Object, orphanQueue)
}

// onEvents has what happens to objects of a kind told.
func onEvents(ctrl controller.TypedController[orphan], mgr manager.Manager, of client.Object, events orphanEvents) error {
	var funcs handler.TypedFuncs[client.Object, orphan]
	if events.seen != nil {
		funcs.CreateFunc = func(_ context.Context, e event.CreateEvent, q orphanQueue) { events.seen(e.Object, q) }
		funcs.UpdateFunc = func(_ context.Context, e event.UpdateEvent, q orphanQueue) {
			if e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() {
				events.seen(e.ObjectNew, q)
			}
		}
	}
	if events.gone != nil {
		funcs.DeleteFunc = func(ctx context.Context, e event.DeleteEvent, q orphanQueue) { events.gone(ctx, e.Object, q) }
	}
	if err := ctrl.Watch(source.TypedKind(mgr.GetCache(), of, funcs)); err != nil {
		return fmt.Errorf("watch for orphans: %w", err)
	}
	return nil
}

// ownerGone looks at the children of an owner that is gone.
func (o orphans[T]) ownerGone(ctx context.Context, owner client.Object, q orphanQueue) {
	uid := owner.GetUID()
	o.memory.keep(owning{client.ObjectKeyFromObject(owner), uid}, nil)
	for i, k := range o.kinds {
		found, err := cached.List(ctx, o.cache, o.scheme, k.empty, client.MatchingFields{ownerIndex + o.names.prefix: string(uid)})
		if err != nil {
			continue // the next process looks at all of them
		}
		for _, obj := range found {
			if o.finalized(obj) {
				q.Add(orphan{i, client.ObjectKeyFromObject(obj)})
			}
		}
	}
}

// finalized reports whether the end of an object's owner concerns us.
func (o orphans[T]) finalized(obj client.Object) bool {
	_, referred := o.names.referred(obj)
	return obj.GetLabels()[o.names.owner()] != "" && (referred || holds(obj, o.names.finalizer()))
}

// Reconcile releases an orphan, and deletes it if garbage collection does not.
func (o orphans[T]) Reconcile(ctx context.Context, r orphan) (reconcile.Result, error) {
	k := o.kinds[r.kind]
	obj, ok := k.empty.DeepCopyObject().(client.Object)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("%T is no object", k.empty)
	}
	if err := o.cache.Get(ctx, r.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner, ok := o.names.referred(obj)
	if !o.finalized(obj) {
		return reconcile.Result{}, nil
	}
	if !ok {
		ref := metav1.GetControllerOf(obj)
		if ref == nil {
			return reconcile.Result{}, nil
		}
		owner = types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}
		if !o.ownerNamespaced {
			owner.Namespace = ""
		}
	}
	if !o.terms.Watches(owner.Namespace) { // another installation looks after it
		return reconcile.Result{}, nil
	}
	living, err := o.living(ctx, owner)
	if err != nil || living {
		return reconcile.Result{}, err
	}
	by := owning{owner, types.UID(obj.GetLabels()[o.names.owner()])}
	if ok {
		_, err = o.delete(ctx, k.refOf(r.NamespacedName), by, obj)
	} else {
		_, err = o.release(ctx, k.refOf(r.NamespacedName), by, obj)
	}
	return reconcile.Result{}, err
}

// living reports whether there is an owner of that name. If the cache has none, the API server is asked.
func (o orphans[T]) living(ctx context.Context, owner types.NamespacedName) (bool, error) {
	for _, reader := range []client.Reader{o.cache, o.live} {
		err := reader.Get(ctx, owner, cached.New[T]())
		if err == nil || !apierrors.IsNotFound(err) {
			return err == nil, err
		}
	}
	return false, nil
}

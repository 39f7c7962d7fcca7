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
			if ctrl, err = controller.NewTyped(w.names.prefix+"-orphans", mgr, controller.TypedOptions[orphan]{
				Reconciler: o, SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation,
			}); err != nil {
				return fmt.Errorf("watch for orphans: %w", err)
			}
			if err := ctrl.Watch(source.TypedKind(mgr.GetCache(), client.Object(cached.New[T]()), o.ownerGone())); err != nil {
				return fmt.Errorf("watch for orphans: %w", err)
			}
		}
		add := func(q orphanQueue, obj client.Object) {
			if o.finalized(obj) {
				q.Add(orphan{i, client.ObjectKeyFromObject(obj)})
			}
		}
		err := ctrl.Watch(source.TypedKind(mgr.GetCache(), k.empty, handler.TypedFuncs[client.Object, orphan]{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q orphanQueue) { add(q, e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q orphanQueue) {
				if e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() {
					add(q, e.ObjectNew)
				}
			},
		}))
		if err != nil {
			return fmt.Errorf("watch for orphans: %w", err)
		}
	}
	return nil
}

// ownerGone looks at the children of an owner that is gone.
func (o orphans[T]) ownerGone() handler.TypedEventHandler[client.Object, orphan] {
	return handler.TypedFuncs[client.Object, orphan]{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q orphanQueue) {
			uid := e.Object.GetUID()
			o.memory.keep(owning{client.ObjectKeyFromObject(e.Object), uid}, nil)
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
		},
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

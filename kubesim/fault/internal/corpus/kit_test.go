package corpus

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// soon is after how long an operator comes back to what takes a moment.
const soon = 5 * time.Second

// kit is what operators of Items have in common, above all those that make Parts of an Item, with names such as NAME-set.
type kit struct{ client.Client }

// ofParts sets up an operator of Items and their Parts.
func ofParts(operator func(k kit, mgr ctrl.Manager) reconcile.Reconciler) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&Part{}).Complete(operator(kit{mgr.GetClient()}, mgr))
	}
}

// item returns an item that is not being deleted, nil if there is none.
func (k kit) item(ctx context.Context, req ctrl.Request) (*Item, error) {
	i := &Item{}
	if err := k.Get(ctx, req.NamespacedName, i); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !i.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return i, nil
}

// part returns a part of an item, nil if there is none. One that belongs to another item is an error.
func (k kit) part(ctx context.Context, item *Item, suffix string) (*Part, error) {
	p := &Part{}
	err := k.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name + suffix}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil && !metav1.IsControlledBy(p, item) {
		return nil, apierrors.NewConflict(groupVersion().WithResource("parts").GroupResource(), p.Name, nil)
	}
	return p, err
}

// partsOf lists the parts of an item, as a reader sees them.
func partsOf(ctx context.Context, reader client.Reader, item *Item) (mine []Part, err error) {
	all := &PartList{}
	if err := reader.List(ctx, all, client.InNamespace(item.Namespace)); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], item) {
			mine = append(mine, all.Items[i])
		}
	}
	return mine, nil
}

// create makes a part of an item.
func (k kit) create(ctx context.Context, item *Item, suffix string, spec Spec) (*Part, error) {
	p := &Part{ObjectMeta: metav1.ObjectMeta{Name: item.Name + suffix}, Spec: spec}
	return p, k.make(ctx, item, p)
}

// make makes a part of an item that has a name, or gets one that begins with the item's.
func (k kit) make(ctx context.Context, item *Item, p *Part) error {
	p.Namespace = item.Namespace
	if p.Name == "" {
		p.GenerateName = item.Name + "-"
	}
	if err := controllerutil.SetControllerReference(item, p, k.Scheme()); err != nil {
		return err
	}
	return k.Create(ctx, p)
}

// remove deletes a part, and no later one of the same name.
func (k kit) remove(ctx context.Context, p *Part) error {
	return client.IgnoreNotFound(k.Delete(ctx, p, client.Preconditions{UID: &p.UID}))
}

// hold puts the finalizer on an item, unless it is there.
func (k kit) hold(ctx context.Context, item *Item) error {
	if !controllerutil.AddFinalizer(item, finalizer) {
		return nil
	}
	return k.Update(ctx, item)
}

// letGo removes the finalizer of an item, unless it is gone.
func (k kit) letGo(ctx context.Context, item *Item) error {
	if !controllerutil.RemoveFinalizer(item, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(k.Update(ctx, item))
}

// annotate sets an annotation of an object in memory, or removes it if the value is "".
func annotate(o client.Object, key, value string) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	if value == "" {
		delete(all, key)
	}
	o.SetAnnotations(all)
}

// report writes that an item is ready, unless its status says so.
func (k kit) report(ctx context.Context, item *Item) error {
	return k.reportAs(ctx, item, item.Status.ExternalID, metav1.ConditionTrue, "Available")
}

// reportAs writes whether an item is ready and what belongs to it, unless its status says so.
func (k kit) reportAs(ctx context.Context, item *Item, id string, is metav1.ConditionStatus, reason string) error {
	before := item.Status.deepCopy()
	item.Status.ObservedGeneration, item.Status.ExternalID = item.Generation, id
	meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: is, Reason: reason, ObservedGeneration: item.Generation,
	})
	if equality.Semantic.DeepEqual(before, item.Status) {
		return nil
	}
	return k.Status().Update(ctx, item)
}

// forParts is a controller that does something with each Part.
func forParts(name string, act func(ctx context.Context, c client.Client, p *Part) error) fault.Actor {
	return fault.Actor{Name: name, Act: func(ctx context.Context, w *fault.World) error {
		all := &PartList{}
		if err := w.Client.List(ctx, all); err != nil {
			return err
		}
		for i := range all.Items {
			if err := act(ctx, w.Client, &all.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// slowly is a controller that lets certain Parts exist for a while after they were deleted.
func slowly(name, finalizer string, which func(p *Part) bool) fault.Actor {
	return forParts(name, func(ctx context.Context, c client.Client, p *Part) error {
		changed := false
		switch {
		case !which(p):
		case p.DeletionTimestamp.IsZero():
			changed = controllerutil.AddFinalizer(p, finalizer)
		default:
			changed = controllerutil.RemoveFinalizer(p, finalizer)
		}
		if !changed {
			return nil
		}
		return c.Update(ctx, p)
	})
}

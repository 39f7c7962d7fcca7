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
)

// soon is after how long an operator comes back to what takes a moment.
const soon = 5 * time.Second

// kit is what operators have in common that make Parts of an Item, with names such as NAME-set.
type kit struct{ client.Client }

// ofParts sets up an operator of Items and their Parts.
func ofParts(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&Part{}).Complete(r)
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

// create makes a part of an item.
func (k kit) create(ctx context.Context, item *Item, suffix string, spec Spec) (*Part, error) {
	p := &Part{ObjectMeta: metav1.ObjectMeta{Name: item.Name + suffix, Namespace: item.Namespace}, Spec: spec}
	if err := controllerutil.SetControllerReference(item, p, k.Scheme()); err != nil {
		return nil, err
	}
	return p, k.Create(ctx, p)
}

// remove deletes a part, and no later one of the same name.
func (k kit) remove(ctx context.Context, p *Part) error {
	return client.IgnoreNotFound(k.Delete(ctx, p, client.Preconditions{UID: &p.UID}))
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
	before := item.Status.deepCopy()
	item.Status.ObservedGeneration = item.Generation
	meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: item.Generation,
	})
	if equality.Semantic.DeepEqual(before, item.Status) {
		return nil
	}
	return k.Status().Update(ctx, item)
}

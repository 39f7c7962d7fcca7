// Package bare is the operator of Things as a careful author writes it on controller-runtime alone:
// a finalizer before the external resource is created, one call for each change, and a write only if
// something differs.
package bare

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/test/beside/internal/cloud"
)

const finalizer = "things.trimtab.dev/bare"

// Reconciler reconciles Things.
type Reconciler struct {
	Client client.Client
	Cloud  cloud.API
	Drift  time.Duration
}

// SetupWithManager adds the reconciler to mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&thing.Thing{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: new(true)}).
		Complete(r)
}

// Reconcile brings one item to what its Thing asks for.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &thing.Thing{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.cleanUp(ctx, obj)
	}
	if before := obj.DeepCopy(); controllerutil.AddFinalizer(obj, finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, obj, patch); err != nil {
			return reconcile.Result{}, err
		}
	}
	item, err := r.ensure(ctx, obj)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.Drift}, r.report(ctx, obj, item)
}

func name(obj *thing.Thing) string { return "thing-" + string(obj.UID) }

func (r *Reconciler) cleanUp(ctx context.Context, obj *thing.Thing) error {
	if !controllerutil.ContainsFinalizer(obj, finalizer) {
		return nil
	}
	if err := r.Cloud.Delete(ctx, name(obj)); err != nil {
		return err
	}
	before := obj.DeepCopy()
	controllerutil.RemoveFinalizer(obj, finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Client.Patch(ctx, obj, patch))
}

// ensure makes the call that the status suggests: a create before the first status, an update for a
// new generation, otherwise a read.
func (r *Reconciler) ensure(ctx context.Context, obj *thing.Thing) (cloud.Item, error) {
	ready := meta.FindStatusCondition(obj.Status.Conditions, "Ready")
	if ready == nil {
		return r.create(ctx, obj)
	}
	if ready.ObservedGeneration != obj.Generation {
		return r.Cloud.Resize(ctx, name(obj), obj.Spec.Size)
	}
	item, err := r.Cloud.Get(ctx, name(obj))
	switch {
	case errors.Is(err, cloud.ErrNotFound):
		return r.create(ctx, obj)
	case err == nil && item.Size != obj.Spec.Size:
		return r.Cloud.Resize(ctx, name(obj), obj.Spec.Size)
	}
	return item, err
}

// create creates the item. The name contains the UID, so what has it already is ours.
func (r *Reconciler) create(ctx context.Context, obj *thing.Thing) (cloud.Item, error) {
	item, err := r.Cloud.Create(ctx, cloud.Item{Name: name(obj), Size: obj.Spec.Size, Labels: map[string]string{"uid": string(obj.UID)}})
	if errors.Is(err, cloud.ErrExists) {
		return r.Cloud.Get(ctx, name(obj))
	}
	return item, err
}

// report writes the status if it differs.
func (r *Reconciler) report(ctx context.Context, obj *thing.Thing, item cloud.Item) error {
	before := obj.DeepCopy()
	obj.Status.ObservedGeneration = obj.Generation
	obj.Status.Host = item.Name + ".example.org"
	meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", Message: "the item is as the spec asks", ObservedGeneration: obj.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, obj.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, obj, client.MergeFrom(before))
}

package corpus

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Holder: what it does with the finalizers of others.
const (
	ClearsFinalizers   Bug = "removes all finalizers from an object in deletion"      // I10
	ReplacesFinalizers Bug = "sets its finalizer as the only one, whatever there was" // I10
)

// Holder puts a finalizer on each Item, and removes it when the Item is deleted.
type Holder struct {
	kit

	Bug Bug
}

// SetupHolder sets up a Holder with a bug.
func SetupHolder(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(&Holder{kit{mgr.GetClient()}, bug})
	}
}

const hold = "corpus.example.com/hold"

// Reconcile implements reconcile.Reconciler.
func (r *Holder) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := item.DeepCopy()
	switch {
	case item.DeletionTimestamp == nil && r.Bug == ReplacesFinalizers:
		item.Finalizers = []string{hold}
	case item.DeletionTimestamp == nil:
		controllerutil.AddFinalizer(item, hold)
	case r.Bug == ClearsFinalizers:
		item.Finalizers = nil
	default:
		controllerutil.RemoveFinalizer(item, hold)
	}
	if slices.Equal(before.Finalizers, item.Finalizers) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Patch(ctx, item, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

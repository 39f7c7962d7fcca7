package corpus

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Anyway re-creates what the finalizer of Operatify does (reconciler/reconcile_finalizer.go):
// when the external delete fails, it logs that it continues to delete the Kubernetes object
// anyway and takes the finalizer off. One error 500 of the external API, and what exists there
// belongs to nobody.
//
// Fixed, it returns the error and comes again.
type Anyway struct {
	renting

	Fixed bool
}

// SetupAnyway sets up an Anyway.
func SetupAnyway(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofMachines(func(r renting) reconcile.Reconciler { return &Anyway{r, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Anyway) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, item)
	}
	if err := r.hold(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	if err == nil && len(all) == 0 {
		_, err = r.Cloud.Create(ctx, string(item.UID), item.Spec.Size)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.reportAs(ctx, item, "", metav1.ConditionTrue, "Verified")
}

// remove deletes the external resource, and then the finalizer.
func (r *Anyway) remove(ctx context.Context, item *Item) error {
	err := r.release(ctx, item)
	if err == nil || r.Fixed || !controllerutil.ContainsFinalizer(item, finalizer) {
		return err
	}
	log.FromContext(ctx).Error(err, "delete failed; go on deleting the object anyway")
	return r.letGo(ctx, item)
}

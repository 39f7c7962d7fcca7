package corpus

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Anyway re-creates what the finalizer of Operatify does (reconciler/reconcile_finalizer.go):
// when the external delete fails, it logs that it continues to delete the Kubernetes object
// anyway and takes the finalizer off. One error 500 of the external API, and what exists there
// belongs to nobody.
//
// Fixed, it returns the error and comes again.
type Anyway struct {
	client.Client

	Cloud API
	Fixed bool

	held memory
}

// SetupAnyway sets up an Anyway.
func SetupAnyway(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		r := &Anyway{Client: mgr.GetClient(), Cloud: API{env}, Fixed: fixed, held: memory{}}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(r)
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Anyway) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	err := r.Get(ctx, req.NamespacedName, item)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if buried := r.held.bury(ctx, r.Cloud, req.NamespacedName, item.UID); buried != nil || err != nil {
		return ctrl.Result{}, buried
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, item)
	}
	if controllerutil.AddFinalizer(item, finalizer) {
		if err := r.Update(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	r.held[req.NamespacedName] = item.UID
	all, err := r.Cloud.List(ctx, string(item.UID))
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		if _, err := r.Cloud.Create(ctx, string(item.UID), item.Spec.Size); err != nil {
			return ctrl.Result{}, err
		}
	}
	changed := meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Verified", ObservedGeneration: item.Generation,
	})
	if !changed {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, item)
}

// remove deletes the external resource, and then the finalizer.
func (r *Anyway) remove(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	if err := removeMachines(ctx, r.Cloud, item.UID); err != nil {
		if r.Fixed {
			return err
		}
		log.FromContext(ctx).Error(err, "delete failed; go on deleting the object anyway")
	}
	controllerutil.RemoveFinalizer(item, finalizer)
	err := client.IgnoreNotFound(r.Update(ctx, item))
	if err == nil {
		delete(r.held, client.ObjectKeyFromObject(item))
	}
	return err
}

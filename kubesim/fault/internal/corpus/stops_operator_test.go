package corpus

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Stops re-creates rabbitmq/cluster-operator#648. When a cluster is deleted, it deletes the set by name. A process that
// starts with an old cache finds a former cluster of the same name, which is being deleted, and deletes the set of the
// present one: the cluster is down until the cache has caught up and the set is created again.
//
// Fixed, it deletes only a set of the cluster that it has found, and no later one.
type Stops struct {
	kit

	Fixed bool
}

// SetupStops sets up a Stops: Items are clusters, each with a Part NAME-set.
func SetupStops(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Stops{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Stops) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, item)
	}
	if err := r.hold(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	set, err := r.part(ctx, item, "-set")
	if err == nil && set == nil {
		_, err = r.create(ctx, item, "-set", Spec{Size: item.Spec.Size})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// finalize deletes the set of an item, and then its finalizer.
func (r *Stops) finalize(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	set, err := r.part(ctx, item, "-set")
	switch {
	case err != nil:
		return err
	case set != nil && r.Fixed:
		err = r.remove(ctx, set)
	case set != nil:
		err = client.IgnoreNotFound(r.Delete(ctx, set))
	}
	if err != nil {
		return err
	}
	return r.letGo(ctx, item)
}

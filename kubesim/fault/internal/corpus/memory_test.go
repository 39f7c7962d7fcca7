package corpus

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// memory is the UIDs of objects that bear an operator's finalizer, by name. A DELETE that was under
// way when the finalizer was written takes the object with the finalizer on it, and nobody asks
// for what the external API has: the operator has to know by itself that it was there.
type memory map[types.NamespacedName]types.UID

// renting is what operators have in common that rent machines for Items.
type renting struct {
	kit

	Cloud API

	held memory
}

// ofMachines sets up an operator of Items and their machines.
func ofMachines(operator func(renting) reconcile.Reconciler) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(operator(newRenting(mgr, env)))
	}
}

func newRenting(mgr ctrl.Manager, env *fault.Env) renting {
	return renting{kit{mgr.GetClient()}, API{env}, memory{}}
}

// item returns an item, also one that is being deleted; nil if there is none. Before, it removes what belongs to an
// item of the same name that went without asking.
func (r renting) item(ctx context.Context, req ctrl.Request) (*Item, error) {
	item := &Item{}
	err := r.Get(ctx, req.NamespacedName, item)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if uid, known := r.held[req.NamespacedName]; known && uid != item.UID {
		if err := r.removeMachines(ctx, uid); err != nil {
			return nil, err
		}
		delete(r.held, req.NamespacedName)
	}
	if err != nil {
		return nil, nil //nolint:nilerr // there is none
	}
	return item, nil
}

// removeMachines deletes the external resources of an object.
func (r renting) removeMachines(ctx context.Context, uid types.UID) error {
	all, err := r.Cloud.List(ctx, string(uid))
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := r.Cloud.Delete(ctx, m.ID); err != nil {
			return err
		}
	}
	return nil
}

// hold puts the finalizer on an item, and remembers that it has one.
func (r renting) hold(ctx context.Context, item *Item) error {
	if err := r.kit.hold(ctx, item); err != nil {
		return err
	}
	r.held[client.ObjectKeyFromObject(item)] = item.UID
	return nil
}

// release deletes the machines of an item, and then its finalizer.
func (r renting) release(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	if err := r.removeMachines(ctx, item.UID); err != nil {
		return err
	}
	return r.letGo(ctx, item)
}

// letGo removes the finalizer of an item, and forgets that it had one.
func (r renting) letGo(ctx context.Context, item *Item) error {
	err := r.kit.letGo(ctx, item)
	if err == nil {
		delete(r.held, client.ObjectKeyFromObject(item))
	}
	return err
}

package corpus

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Workers re-creates ray-project/kuberay#715. It creates or deletes as many workers as the cache has too few or too
// many. The cache need not have those that it has just created yet, so it creates them again, and then deletes some, with
// what they had begun.
//
// Fixed, it does neither while it expects the cache to show what it did.
type Workers struct {
	kit

	Live  client.Reader
	Fixed bool

	expected map[types.NamespacedName][]client.ObjectKey
}

// SetupWorkers sets up a Workers: Items are groups of Size workers, which are Parts.
func SetupWorkers(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, mgr ctrl.Manager) reconcile.Reconciler {
		return &Workers{k, mgr.GetAPIReader(), fixed, map[types.NamespacedName][]client.ObjectKey{}}
	})
}

// Reconcile implements reconcile.Reconciler.
func (r *Workers) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if r.Fixed {
		if wait, err := r.isBehind(ctx, req.NamespacedName); wait || err != nil {
			return ctrl.Result{RequeueAfter: soon}, err
		}
	}
	workers, err := r.workers(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	for n := int64(len(workers)); n < item.Spec.Size; n++ {
		if err := r.start(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	for n := int64(len(workers)) - 1; n >= item.Spec.Size; n-- {
		if err := r.remove(ctx, &workers[n]); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// workers lists the workers of an item, by name.
func (r *Workers) workers(ctx context.Context, item *Item) ([]Part, error) {
	mine, err := partsOf(ctx, r, item)
	mine = slices.DeleteFunc(mine, func(p Part) bool { return !p.DeletionTimestamp.IsZero() })
	slices.SortFunc(mine, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return mine, err
}

// start creates a worker, and notes that the cache will show it.
func (r *Workers) start(ctx context.Context, item *Item) error {
	w := &Part{}
	if err := r.make(ctx, item, w); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(item)
	r.expected[key] = append(r.expected[key], client.ObjectKeyFromObject(w))
	return nil
}

// isBehind reports whether the cache does not show a worker yet that was created and exists.
func (r *Workers) isBehind(ctx context.Context, item types.NamespacedName) (bool, error) {
	for _, key := range slices.Clone(r.expected[item]) {
		err := r.Get(ctx, key, &Part{})
		if apierrors.IsNotFound(err) {
			if err := r.Live.Get(ctx, key, &Part{}); !apierrors.IsNotFound(err) {
				return true, err
			}
			err = nil // it is gone again
		}
		if err != nil {
			return false, err
		}
		r.expected[item] = slices.DeleteFunc(r.expected[item], func(k client.ObjectKey) bool { return k == key })
	}
	return false, nil
}

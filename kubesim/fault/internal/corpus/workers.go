package corpus

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		expected := map[types.NamespacedName][]client.ObjectKey{}
		return ofParts(mgr, &Workers{kit{mgr.GetClient()}, mgr.GetAPIReader(), fixed, expected})
	}
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
	all := &PartList{}
	if err := r.List(ctx, all, client.InNamespace(item.Namespace)); err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(all.Items, func(p Part) bool { return !metav1.IsControlledBy(&p, item) || !p.DeletionTimestamp.IsZero() })
	slices.SortFunc(mine, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return mine, nil
}

// start creates a worker, and notes that the cache will show it.
func (r *Workers) start(ctx context.Context, item *Item) error {
	w := &Part{ObjectMeta: metav1.ObjectMeta{GenerateName: item.Name + "-", Namespace: item.Namespace}}
	if err := controllerutil.SetControllerReference(item, w, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, w); err != nil {
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

package corpus

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Expand re-creates rabbitmq/cluster-operator#782. To enlarge a volume it deletes the stateful
// set, enlarges the volume claim, and creates the set again with the new size. Whether there
// is anything to enlarge it tells by the size in the set. Killed after the set is deleted,
// it finds no set, makes one with the new size, and the claim keeps its old one for ever.
//
// Fixed, it compares the claim itself with the wanted size.
type Expand struct {
	kit

	Fixed bool
}

// SetupExpand sets up an Expand: Items are clusters, and of each there are two Parts, NAME-set
// and NAME-claim.
func SetupExpand(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Expand{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Expand) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	set, err := r.part(ctx, item, "-set")
	if err != nil {
		return ctrl.Result{}, err
	}
	claim, err := r.part(ctx, item, "-claim")
	if err != nil {
		return ctrl.Result{}, err
	}
	if set, err = r.expand(ctx, item, set, claim); err != nil {
		return ctrl.Result{}, err
	}
	if claim == nil {
		_, err = r.create(ctx, item, "-claim", Spec{Size: item.Spec.Size})
	}
	if err == nil && set == nil {
		_, err = r.create(ctx, item, "-set", Spec{Size: item.Spec.Size})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// expand makes the claim larger, and returns the set if it is left.
func (r *Expand) expand(ctx context.Context, item *Item, set, claim *Part) (*Part, error) {
	small := set != nil && set.Spec.Size < item.Spec.Size
	if small {
		if err := r.remove(ctx, set); err != nil {
			return nil, err
		}
		set = nil
	}
	if r.Fixed {
		small = claim != nil && claim.Spec.Size < item.Spec.Size
	}
	if !small || claim == nil {
		return set, nil
	}
	claim.Spec.Size = item.Spec.Size
	return set, r.Update(ctx, claim)
}

package corpus

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Remembered re-creates bug 1691241 of operator-framework/operator-marketplace (pull request 140). Whether the spec of
// an object that is ready has changed it tells by the last spec, which it keeps in memory. A process that
// remembers none takes the object for unchanged. Killed after a change of the spec and before its first write, it never makes the change.
//
// Fixed, it takes what it does not remember for changed.
type Remembered struct {
	kit

	Fixed bool

	last map[types.NamespacedName]Spec
}

// SetupRemembered sets up a Remembered, which makes a Part NAME-source of each Item.
func SetupRemembered(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler {
		return &Remembered{k, fixed, map[types.NamespacedName]Spec{}}
	})
}

// Reconcile implements reconcile.Reconciler.
func (r *Remembered) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	last, found := r.last[req.NamespacedName]
	changed := found && last != item.Spec || !found && r.Fixed
	if meta.IsStatusConditionTrue(item.Status.Conditions, ready) && !changed {
		return ctrl.Result{}, nil
	}
	source, err := r.part(ctx, item, "-source")
	if err != nil {
		return ctrl.Result{}, err
	}
	if source == nil {
		_, err = r.create(ctx, item, "-source", item.Spec)
	} else if source.Spec != item.Spec {
		source.Spec = item.Spec
		err = r.Update(ctx, source)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	r.last[req.NamespacedName] = item.Spec
	return ctrl.Result{}, nil
}

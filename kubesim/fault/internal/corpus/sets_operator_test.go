package corpus

import (
	"context"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Sets re-creates kubernetes-sigs/cluster-api#13649: the MachineDeployment controller looks
// in its cache for a MachineSet that fits, and creates one under a generated name if it
// sees none. The set that it has just made was not in the cache yet when it looked again
// (there, because a wait for the cache had timed out), so it made three sets for one
// deployment.
//
// Fixed, it asks the API server itself before it creates.
type Sets struct {
	kit

	Live  client.Reader
	Fixed bool
}

// SetupSets sets up a Sets: Items are the deployments, Parts their sets.
func SetupSets(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, mgr ctrl.Manager) reconcile.Reconciler { return &Sets{k, mgr.GetAPIReader(), fixed} })
}

const revision = "corpus.example.com/revision"

// Reconcile implements reconcile.Reconciler.
func (r *Sets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if item.Labels[revision] == "" {
		item.Labels = map[string]string{revision: "1"}
		if err := r.Update(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	found, err := r.finds(ctx, r.Client, item)
	if err == nil && !found && r.Fixed {
		found, err = r.finds(ctx, r.Live, item)
	}
	if err == nil && !found {
		err = r.make(ctx, item, &Part{Spec: Spec{Size: item.Spec.Size, Text: item.Spec.Text}})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// finds reports whether an item has a set of its present text, as a reader sees it.
func (r *Sets) finds(ctx context.Context, reader client.Reader, item *Item) (bool, error) {
	sets, err := partsOf(ctx, reader, item)
	return slices.ContainsFunc(sets, func(p Part) bool { return p.Spec.Text == item.Spec.Text }), err
}

package corpus

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Secrets re-creates K8SPXC-896 and 897 of percona-xtradb-cluster-operator (pull request 1043) and
// K8SPSMDB-578 and 579 of percona-server-mongodb-operator (797). It makes two secrets, or two certificates,
// if it does not find the first of them. Killed between the two, or after an error, it finds the first, and
// the second is never made.
//
// Fixed, it looks for both.
type Secrets struct {
	kit

	Fixed bool
}

// SetupSecrets sets up a Secrets: Items are clusters, and of each there are two Parts, NAME-ssl and
// NAME-ssl-internal.
func SetupSecrets(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Secrets{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Secrets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	outer, err := r.part(ctx, item, "-ssl")
	if err != nil {
		return ctrl.Result{}, err
	}
	if outer != nil && !r.Fixed {
		return ctrl.Result{}, r.report(ctx, item)
	}
	inner, err := r.part(ctx, item, "-ssl-internal")
	if err != nil {
		return ctrl.Result{}, err
	}
	if outer == nil {
		_, err = r.create(ctx, item, "-ssl", Spec{Text: item.Spec.Text})
	}
	if err == nil && inner == nil {
		_, err = r.create(ctx, item, "-ssl-internal", Spec{Text: item.Spec.Text})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

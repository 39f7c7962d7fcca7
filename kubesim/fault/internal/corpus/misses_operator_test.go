package corpus

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Misses re-creates instaclustr/cassandra-operator#398. When a cluster is made smaller, it deletes the claim of each pod that it
// sees being deleted. If it first looks when a pod is gone already, it never deletes that pod's claim.
//
// Fixed, it deletes the claims that have no pod and belong to none that the set still has.
type Misses struct {
	kit

	Fixed bool
}

// SetupMisses sets up a Misses: Items are clusters of Size nodes, each with a Part NAME-set, of which the [SetController]
// makes the pods and claims.
func SetupMisses(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		byName := func(_ context.Context, o client.Object) []reconcile.Request {
			name, _, _ := strings.Cut(o.GetName(), "-")
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
		}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).
			Watches(&Part{}, handler.EnqueueRequestsFromMapFunc(byName)).Complete(&Misses{kit{mgr.GetClient()}, fixed})
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Misses) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	set, err := r.part(ctx, item, "-set")
	if err != nil {
		return ctrl.Result{}, err
	}
	if set == nil {
		_, err = r.create(ctx, item, "-set", Spec{Size: item.Spec.Size})
	} else if set.Spec.Size != item.Spec.Size {
		set.Spec.Size = item.Spec.Size
		err = r.Update(ctx, set)
	} else {
		err = r.clean(ctx, item)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// clean deletes the claims of nodes that are too many.
func (r *Misses) clean(ctx context.Context, item *Item) error {
	all := &PartList{}
	if err := r.List(ctx, all, client.InNamespace(item.Namespace)); err != nil {
		return err
	}
	named := map[string]*Part{}
	for i := range all.Items {
		named[all.Items[i].Name] = &all.Items[i]
	}
	for name, claim := range named {
		if !strings.HasPrefix(name, item.Name+"-claim-") {
			continue
		}
		pod := named[strings.Replace(name, "-claim-", "-pod-", 1)]
		goes := pod != nil && pod.DeletionTimestamp != nil
		if r.Fixed {
			goes = pod == nil && ordinal(name) >= item.Spec.Size
		}
		if goes && claim.DeletionTimestamp.IsZero() {
			if err := r.remove(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// SlowPods is a controller that lets pods of a [SetController] exist for a while after they were deleted.
func SlowPods() fault.Actor {
	return slowly("kubelet", "corpus.example.com/container", func(p *Part) bool { return strings.Contains(p.Name, "-pod-") })
}

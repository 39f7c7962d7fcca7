package fault

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestGenerations proves that another writer of a Deployment increases no generation: how far its status is behind
// would differ, which is not for the operator to mend.
func TestGenerations(t *testing.T) {
	d := deployment()
	r := Explore(t, Scenario{
		Name: "generations", Steps: []Step{Create(d), Merge(d, `{"spec":{"replicas":5}}`)}, Races: []Step{},
		Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
			c := mgr.GetClient()
			return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				d := &appsv1.Deployment{}
				if err := c.Get(ctx, req.NamespacedName, d); err != nil || *d.Spec.Replicas == 2 {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if d.Status.ObservedGeneration == 0 {
					d.Status.ObservedGeneration = d.Generation
					if err := c.Status().Update(ctx, d); err != nil {
						return reconcile.Result{}, err
					}
				}
				return reconcile.Result{}, c.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)))
			}))
		}},
	}, Only(Faults), Unpruned())
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Faults] == 0 {
		t.Error("no fault was played")
	}
}

package fault

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// always is a controller that does not wait for a leader.
type always struct{ controller.Controller }

func (always) NeedLeaderElection() bool { return false }

// wrapped is an operator whose controller the manager gets in a struct, and which makes its calls with contexts
// of its own. It writes what is there already, in each pass.
func wrapped(mgr ctrl.Manager, _ *Env) error {
	c, err := controller.NewUnmanaged("wrapped", controller.Options{
		SkipNameValidation: new(true),
		Reconciler: reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			var cm corev1.ConfigMap
			if err := mgr.GetClient().Get(context.Background(), req.NamespacedName, &cm); err != nil || cm.Name != "a" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			cm.Data = map[string]string{"seen": "yes"}
			return reconcile.Result{}, mgr.GetClient().Update(context.Background(), &cm)
		}),
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})); err != nil {
		return err
	}
	return mgr.Add(always{c})
}

// TestCallsWithoutContext proves that calls belong to the pass in which they are made, whatever their context and
// whatever the manager got as the controller: a write of what is there already, in the first pass after a
// restart, is a habit and no finding.
func TestCallsWithoutContext(t *testing.T) {
	s := Scenario{
		Name: "wrapped", Operator: Operator{SetUp: wrapped}, Shared: []string{"configmaps"},
		Steps: []Step{Create(configMap("a"))},
	}
	e, _ := prepared(t, s)
	for _, c := range e.reference.Run.Calls {
		if c.Write && c.Pass == history.Nobody {
			t.Errorf("call %d, %s, belongs to no pass", c.Index, c.What)
		}
	}
	r, err := explored(t, s, time.Minute, Crashes)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
}

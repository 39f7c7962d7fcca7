package fault_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// A scenario for an operator that has nothing but built-in kinds: it labels ConfigMaps. In a
// test, fault.Run(t, scenario) plays it through every crash and every single fault.
func ExampleScenario() {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	scenario := fault.Scenario{
		Name:     "label config maps",
		Operator: fault.Operator{SetUp: setupLabeller},
		Steps: []fault.Step{
			fault.Create(settings).Expecting(labelled(settings)),
			fault.Merge(settings, `{"data":{"colour":"blue"}}`).Named("paint it"),
			fault.Wait(time.Hour),
			fault.Delete(settings).Gone(settings),
		},
	}
	for _, step := range scenario.Steps {
		fmt.Println(step.Name)
	}
	// Output:
	// create settings
	// paint it
	// wait 1h0m0s
	// delete settings
}

// labelled is an expectation of a step.
func labelled(obj client.Object) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		c := &corev1.ConfigMap{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: obj.GetName()}, c); err != nil {
			return err
		}
		if c.Labels["seen"] != "yes" {
			return errors.New("it has no label")
		}
		return nil
	}
}

type labeller struct{ client.Client }

func setupLabeller(mgr ctrl.Manager, _ *fault.Env) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(labeller{mgr.GetClient()})
}

func (l labeller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c := &corev1.ConfigMap{}
	if err := l.Get(ctx, req.NamespacedName, c); err != nil || c.Labels["seen"] == "yes" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := c.DeepCopy()
	c.Labels = map[string]string{"seen": "yes"}
	return ctrl.Result{}, l.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

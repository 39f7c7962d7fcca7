package looptest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// greeter wants a greeting in ConfigMaps.
type greeter struct{}

func (greeter) Reconcile(_ context.Context, r *loop.Run[*corev1.ConfigMap]) loop.Outcome {
	greeting := r.Obj.Data["greeting"]
	if greeting == "" {
		return loop.WaitFor("NoGreeting", loop.Dep{Kind: "key", Name: "greeting", Why: "is not set"})
	}
	r.Conditions().True("Greeted", "Said", greeting)
	return loop.Done()
}

// What a Reconciler does with an object, and what the status would say of it.
func ExampleNewPass() {
	for _, data := range []map[string]string{nil, {"greeting": "hello"}} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Data: data}

		p := looptest.NewPass(obj, looptest.Options[*corev1.ConfigMap]{})
		outcome := greeter{}.Reconcile(context.Background(), p.Run)
		report := p.Report(outcome)

		fmt.Println(outcome)
		fmt.Println(report.State+":", report.Message)
		for _, c := range report.Conditions {
			fmt.Println(" ", c.Type, c.Status, c.Reason)
		}
	}
	// Output:
	// WaitFor(NoGreeting, key greeting: it is not set)
	// Pending: waiting for key greeting: it is not set
	//   Ready False NoGreeting
	//   Reconciling True NoGreeting
	// Done()
	// Succeeded: the object matches its spec
	//   Greeted True Said
	//   Ready True Succeeded
}

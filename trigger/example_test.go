package trigger_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/trigger"
)

// A Pod waits for its ServiceAccount by name. The source watches ServiceAccounts, so the operator gets
// permission to list and watch them.
func ExampleReference() {
	var account trigger.Source[*corev1.Pod] = trigger.Reference[*corev1.Pod]{
		To: &corev1.ServiceAccount{},
		Names: func(p *corev1.Pod) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}}
		},
	}
	for _, kind := range account.Watches() {
		fmt.Printf("%T\n", kind)
	}
	fmt.Println(trigger.Reference[*corev1.Pod]{To: &corev1.ServiceAccount{}}.Check())
	// Output:
	// *v1.ServiceAccount
	// a trigger.Reference needs To, an empty object of the kind referred to, and Names
}

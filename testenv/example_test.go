package testenv_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/testenv"
)

// A test makes an object in a namespace of its own and waits for the state that an operator
// is to bring about.
func Example() {
	TestOrders := func(t testing.TB) { //nolint:thelper // a test, not a helper
		cfg := testenv.Start(t)
		c := testenv.Client(t, cfg)
		ns := testenv.Namespace(t, cfg)

		orders := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"}}
		if err := c.Create(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		go operator(t.Context(), c, orders) // in a real test, the operator's manager

		done := testenv.Wait(t, c, orders, "the orders to be done", func(m *corev1.ConfigMap) bool {
			return m.Data["state"] == "done"
		})
		fmt.Println(done.Name, "are", done.Data["state"])
	}
	run(TestOrders)
	// Output: orders are done
}

// An operator gets the permissions that it asks for and no others, and a test can say how
// many requests it may make.
func ExampleRequests() {
	TestBudget := func(t testing.TB) { //nolint:thelper // a test, not a helper
		admin := testenv.Start(t)
		ns := testenv.Namespace(t, admin)
		cfg, log := testenv.Requests(testenv.User(t, admin, canWriteConfigMaps))

		orders := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders"}}
		if err := testenv.Client(t, cfg).Create(t.Context(), orders); err != nil {
			t.Fatal(err)
		}
		for _, w := range log.Writes("configmaps", ns, "orders") {
			fmt.Println(w.Verb, w.Resource, w.Code)
		}
	}
	run(TestBudget)
	// Output: create configmaps 201
}

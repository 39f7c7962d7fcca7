package operator_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestAsAuthorsDo is the test that doc.go tells authors to write, twice at a time.
func TestAsAuthorsDo(t *testing.T) {
	for _, greeting := range []string{"ahoy", "moin"} {
		t.Run(greeting, func(t *testing.T) {
			t.Parallel()
			op := operatortest.Run(t, probeOperator(), "--greeting="+greeting)
			orders := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: "orders"}}
			if err := op.Client.Create(t.Context(), orders); err != nil {
				t.Fatal(err)
			}
			got := testenv.Wait(t, op.Client, orders, "the operator to greet", greeted)
			if want := greeting + ", orders"; got.Status.Note != want {
				t.Errorf("note %q, want %q", got.Status.Note, want)
			}
		})
	}
}

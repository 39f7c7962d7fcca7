package loop

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

// TestWokenElsewhere: a key in a namespace that the operator does not watch is nobody's, and not read again and again.
func TestWokenElsewhere(t *testing.T) {
	c := New(&tally{visits: map[string]int{}}, Options[*probe.Probe]{})
	c.Govern(Terms{Namespaces: []string{"here"}})
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "there", Name: "a"}}
	if result, err := c.Reconcile(t.Context(), req); err != nil || !result.IsZero() {
		t.Errorf("a pass over an object that is not watched: %+v, %v; want nothing", result, err)
	}
}

package engine

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/poll"
)

// leftBehindOf returns the gauge's value for a kind.
func abandonedOf(t *testing.T, kind string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "trimtab_external_calls_left_behind" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == kind {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatal("there is no gauge")
	return 0
}

// TestCallsLeftBehindAreCounted checks that calls are counted as abandoned until they return. It
// runs before the parallel tests, which abandon calls too.
func TestAbandonedCallsAreCounted(t *testing.T) { //nolint:paralleltest // it counts
	e := New(Driver{Kind: "Thing"}, Options{})
	before := abandonedOf(t, "Thing")
	back := make(chan struct{})
	for _, of := range []subject{{uid: "1"}, {uid: "2"}} {
		e.abandoned.add(of, &abandonedCall{method: "Create", action: decide.ActionCreate}, func() lateAnswer { <-back; return lateAnswer{} })
	}
	if n := abandonedOf(t, "Thing") - before; n != 2 {
		t.Errorf("%v calls are counted, want 2", n)
	}
	close(back)
	if !poll.Until(func() bool { return abandonedOf(t, "Thing") == before }) {
		t.Errorf("%v calls are counted once they are back", abandonedOf(t, "Thing")-before)
	}
}

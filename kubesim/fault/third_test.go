package fault

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestThirdRun proves that a field which is the same in the first two undisturbed runs and differs in the third is not compared:
// two runs may have the same random value by chance.
func TestThirdRun(t *testing.T) {
	var runs atomic.Int64 // outside of any bubble
	s := Scenario{Name: "third", Races: []Step{}, Steps: []Step{{Name: "create a", Do: func(ctx context.Context, w *World) error {
		runs.Add(1)
		return w.Client.Create(ctx, configMap("a"))
	}}}}
	s.Operator.SetUp = configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
		if cm.Name != "a" || cm.Data != nil {
			return nil
		}
		cm.Data = map[string]string{"same": "a", "third": fmt.Sprint(runs.Load()%3 == 0)}
		return c.Update(ctx, cm)
	})
	e, _ := prepared(t, s)
	if got, want := fmt.Sprint(e.simulation.State.Masked), "[configmaps default/a data.third]"; got != want {
		t.Errorf("after %d runs, not compared is %v, want %v", runs.Load(), got, want)
	}
}

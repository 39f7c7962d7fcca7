package fault

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// TestLastCallsOfALoop proves that the report of an undisturbed run that does not come to rest when it is watched shows the calls of
// the loop, with the write that its sentence names: the first ones say nothing of it.
func TestLastCallsOfALoop(t *testing.T) {
	s := Scenario{Name: "loop", Steps: []Step{Create(configMap("a")), Create(configMap("c"))}, Races: []Step{}, Quiet: 2 * time.Minute}
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		c := mgr.GetClient()
		loops := manager.RunnableFunc(func(ctx context.Context) error {
			select { // no process of the other runs lives as long
			case <-time.After(25 * time.Minute):
			case <-ctx.Done():
			}
			for ctx.Err() == nil {
				_ = c.Create(ctx, configMap("b"))
				_ = c.Delete(ctx, configMap("b"))
			}
			return nil
		})
		if err := mgr.Add(loops); err != nil {
			return err
		}
		return configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })(mgr, env)
	}
	r, err := explored(t, s, time.Minute, Crashes)
	if err != nil || len(r.Findings) == 0 {
		t.Fatalf("explored with %v and %d findings, want one of I13", err, len(r.Findings))
	}
	if want := "no reconcile makes the calls that go on and on"; !strings.Contains(r.Findings[0].Violations[0].Message, want) {
		t.Errorf("got %q, want %q", r.Findings[0].Violations[0].Message, want)
	}
	_, after, ok := strings.Cut(r.Findings[0].Text, "its last write is ")
	write, _, _ := strings.Cut(after, " (I13")
	_, table, _ := strings.Cut(after, "request")
	if write = strings.Join(strings.Fields(write), " "); !ok || write == "" || strings.Count(table, write+" ") < 5 {
		t.Errorf("want calls of the loop such as the last write, %q, in\n%s", write, r.Findings[0].Text)
	}
}

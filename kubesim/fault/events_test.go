package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// repeats is an operator that records the same event of each ConfigMap three times, a minute apart.
func repeats(mgr ctrl.Manager, _ *Env) error {
	recorder, seen := mgr.GetEventRecorder("repeats"), map[string]int{}
	return ctrl.NewControllerManagedBy(mgr).Named("repeats").For(&corev1.ConfigMap{}).Complete(
		reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			cm := &corev1.ConfigMap{}
			if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil || seen[req.Name] == 3 {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			seen[req.Name]++
			recorder.Eventf(cm, nil, corev1.EventTypeNormal, "Seen", "Look", "there it is")
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}))
}

// TestEventSeries proves that runs are the same although client-go ends several series of events in the order of a map,
// and that what it writes then is in the record.
func TestEventSeries(t *testing.T) {
	var steps []Step
	for i := range 5 {
		steps = append(steps, Create(configMap(fmt.Sprint("a-", i))))
	}
	e, w := prepared(t, Scenario{
		Name: "series", Steps: append(steps, Wait(time.Hour)), Races: []Step{}, Operator: Operator{SetUp: repeats},
	})
	for range 5 {
		again := w.Play(t, run.Job{})
		if what := e.firstDifference(e.reference.Run, again.Run); what != "" {
			t.Fatalf("two starts differ: %s", what)
		}
		ended := 0
		for _, c := range again.Run.Changes {
			if c.Resource != "events" || c.By != history.Operator || c.After == nil {
				continue
			}
			if n, _, err := unstructured.NestedInt64(c.After.Object, "series", "count"); err == nil && n == 3 {
				ended++
			}
		}
		if ended != 5 {
			t.Errorf("%d series were ended, want 5", ended)
		}
	}
}

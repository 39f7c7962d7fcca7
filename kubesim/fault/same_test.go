package fault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// twins are two controllers over one informer that wait at the same time for the same read; then each
// creates an object of its own.
func twins(detached bool) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, _ *Env) error {
		var errs []error
		for _, name := range []string{"one", "two"} {
			errs = append(errs, ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).Complete(
				reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					if req.Name != "a" {
						return reconcile.Result{}, nil
					}
					select { // as long as a cache may take
					case <-time.After(100 * time.Millisecond):
					case <-ctx.Done():
					}
					if detached {
						ctx = context.WithoutCancel(bare{ctx})
					}
					a := &corev1.ConfigMap{}
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, a); err != nil {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"of": "a"}}}
					return reconcile.Result{}, client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, made))
				})))
		}
		return errors.Join(errs...)
	}
}

// bare is a context without the values of its parent, such as one that a library makes for itself.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// TestSameTwice proves that two controllers which wait for the same are played in one order, and that it is
// said what chance decides where nothing tells them apart.
func TestSameTwice(t *testing.T) {
	s := Scenario{Name: "twins", Steps: []Step{Create(configMap("a")), Wait(time.Hour)}, Races: []Step{}, Operator: Operator{SetUp: twins(false)}}
	e, w := prepared(t, s)
	for range 30 {
		again := w.Play(t, run.Job{})
		if what := e.firstDifference(e.reference.Run, again.Run); what != "" {
			t.Fatalf("two starts differ: %s", what)
		}
		if len(again.Learned.Chances) > 0 {
			t.Fatalf("%q were left to chance", again.Learned.Chances)
		}
	}
	s.Operator.SetUp = twins(true)
	for range 10 { // until chance has it
		if _, err := explored(t, s, time.Minute, Crashes); err != nil {
			if want := "waited at the same time to get *v1.ConfigMap default/a"; !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want %q", err, want)
			}
			return
		}
	}
	t.Log("chance had it the same way each time")
}

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRandomOrder proves that a list in the order of a map is the same list each time, and not masked.
func TestRandomOrder(t *testing.T) {
	r := Explore(t, Scenario{
		Name: "ports", Steps: []Step{Create(configMap("a"))}, Races: []Step{},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", Labels: map[string]string{"of": "a"}}}
			for name, port := range map[string]int32{"amqp": 5672, "http": 15672, "mqtt": 1883, "stomp": 61613} {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: port})
			}
			return 0, client.IgnoreAlreadyExists(c.Create(ctx, s))
		})},
	}, Only(Crashes, Faults), Waive(I5, "it tries to create each time"), Waive(I4, "it is never deleted"))
	for _, text := range r.texts() {
		t.Error(text)
	}
	if len(r.Masked) > 0 {
		t.Errorf("%q are not compared; a list with names has no order", r.Masked)
	}
}

// TestOtherFields proves that fields which are random in another place each time are named.
func TestOtherFields(t *testing.T) {
	_, err := explored(t, Scenario{
		Name: "elsewhere", Steps: []Step{Create(configMap("a"))}, Races: []Step{},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			if cm.Data["seen"] != "" {
				return 0, nil
			}
			cm.Data = map[string]string{"seen": "yes", fmt.Sprint("field-", rand.Uint64()): "x"}
			return 0, c.Update(ctx, cm)
		})},
	}, time.Minute, Crashes)
	if err == nil || !strings.Contains(err.Error(), "differs in other fields each time, the last time in configmaps default/a data.field-") {
		t.Errorf("got %v, want the fields", err)
	}
}

// TestRandomPaths proves that names which an operator makes at random may be in the calls of an external
// API: they count by the order in which they appear.
func TestRandomPaths(t *testing.T) {
	s := toyLife("")
	run := s.Operator.SetUp
	s.Operator.SetUp = func(mgr ctrl.Manager, env *Env) error {
		name := fmt.Sprintf("user-%x", rand.Uint64()|1<<63)
		err := ctrl.NewControllerManagedBy(mgr).Named("users").For(&corev1.Namespace{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				if req.Name != "default" {
					return reconcile.Result{}, nil
				}
				_, err := Read(ctx, env, "GET /users/"+name, func(*shelf) (string, error) { return "", nil })
				return reconcile.Result{}, err
			}))
		if err != nil {
			return err
		}
		return run(mgr, env)
	}
	for _, text := range Explore(t, s, Only(Crashes)).texts() {
		t.Error(text)
	}
}

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
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

// TestRandomNames proves that an operator may choose names at random itself, as Cluster API does: they count as names that
// the API server generates. Here each ConfigMap has two others, of which one is named after the other. An operator that
// trusts its cache before it creates them creates one twice.
func TestRandomNames(t *testing.T) {
	for trusts, want := range map[bool]int{false: 0, true: 1} {
		create := func(ctx context.Context, c client.Client, r client.Reader, of *corev1.ConfigMap, base string) (string, error) {
			list := &corev1.ConfigMapList{}
			if err := r.List(ctx, list, client.MatchingLabels{"of": base}); err != nil {
				return "", err
			}
			for _, cm := range list.Items {
				if metav1.IsControlledBy(&cm, of) {
					return cm.Name, nil
				}
			}
			child := configMap(of.Name + "-" + utilrand.String(5))
			child.Labels = map[string]string{"of": base}
			err := ctrl.SetControllerReference(of, child, c.Scheme())
			if err == nil {
				err = c.Create(ctx, child)
			}
			return child.Name, err
		}
		pass := func(ctx context.Context, c client.Client, r client.Reader, cm *corev1.ConfigMap) error {
			first, err := create(ctx, c, r, cm, "first")
			if err != nil {
				return err
			}
			owner := configMap(first)
			if err := c.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
				return err
			}
			second, err := create(ctx, c, r, owner, "second")
			if err != nil || cm.Data["children"] == first+", "+second {
				return err
			}
			cm.Data = map[string]string{"children": first + ", " + second}
			return c.Update(ctx, cm)
		}
		a := configMap("a")
		r := Explore(t, Scenario{
			Name: "random names", Steps: []Step{Create(a), Merge(a, `{"metadata":{"labels":{"x":"y"}}}`), Delete(a)},
			Operator: Operator{SetUp: func(mgr ctrl.Manager, _ *Env) error {
				var reader client.Reader = mgr.GetClient()
				if !trusts {
					reader = mgr.GetAPIReader()
				}
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
					func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
						cm := &corev1.ConfigMap{}
						if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil || cm.Name != "a" || cm.DeletionTimestamp != nil {
							return reconcile.Result{}, client.IgnoreNotFound(err)
						}
						return reconcile.Result{}, pass(ctx, mgr.GetClient(), reader, cm)
					}))
			}},
		}, Waive(I5, "it lists in each pass"))
		surplus := slices.ContainsFunc(r.texts(), func(s string) bool { return strings.Contains(s, "equal configmaps at once") })
		if got := len(r.texts()); got < want || !trusts && got > 0 || trusts != surplus || r.Schedules[Crashes] == 0 {
			t.Errorf("trusts its cache %v: %d findings of %v:\n%s", trusts, got, r.Schedules, strings.Join(r.texts(), "\n"))
		}
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

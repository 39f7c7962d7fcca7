package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// configMaps is an operator that runs reconcile for each ConfigMap.
func configMaps(reconcileOne func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, _ *Env) error {
		return ctrl.NewControllerManagedBy(mgr).Named("configmaps").For(&corev1.ConfigMap{}).Complete(
			reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				cm := &corev1.ConfigMap{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, reconcileOne(ctx, mgr.GetClient(), cm)
			}))
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// explored runs an exploration that may fail without failing the test.
func explored(t *testing.T, s Scenario, patience time.Duration, kinds ...Kind) (Report, error) {
	t.Helper()
	e, err := newExploration(t, &s, options{kinds: kinds})
	if err != nil {
		return Report{}, err
	}
	defer quieten()()
	e.simulation.Hung = patience
	return e.explore()
}

// TestBadInput proves that what cannot be explored ends with one sentence that says why and
// where, and never hangs.
func TestBadInput(t *testing.T) {
	var mu sync.Mutex
	outside := make(chan struct{})
	cases := map[string]struct {
		operator func(ctrl.Manager, *Env) error
		steps    []Step
		want     []string // in the sentence
		hangs    bool     // until the watchdog barks
	}{
		"never comes to rest": {
			operator: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
				cm.Data = map[string]string{"n": cm.ResourceVersion}
				return c.Update(ctx, cm)
			}),
			want: []string{"does not come to rest", "configmaps", "default/a", "update configmaps"},
		},
		"random numbers": {
			operator: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
				if cm.Name != "a" {
					return nil
				}
				return client.IgnoreAlreadyExists(c.Create(ctx, configMap(fmt.Sprint("b", rand.Uint64()))))
			}),
			want: []string{"not the same twice", "call", "in reconcile 0, of controller configmaps for default/a", "random numbers"},
		},
		"a lock held across a call": {
			operator: func(mgr ctrl.Manager, env *Env) error {
				locks := configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
					mu.Lock()
					defer mu.Unlock()
					cm.Data = map[string]string{"a": "b"}
					return c.Update(ctx, cm)
				})
				if err := locks(mgr, env); err != nil {
					return err
				}
				return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					for ctx.Err() == nil {
						time.Sleep(time.Second)
						mu.Lock()
						time.Sleep(time.Second)
						mu.Unlock()
					}
					return nil
				}))
			},
			want:  []string{"holds a lock", "bad_test.go"},
			hangs: true,
		},
		"a real socket": {
			operator: configMaps(func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap) error {
				l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				_, err = l.Accept()
				return err
			}),
			want:  []string{"real socket", "bad_test.go"},
			hangs: true,
		},
		"a channel from outside": {
			operator: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error {
				<-outside
				return nil
			}),
			want:  []string{"channel made outside", "bad_test.go"},
			hangs: true,
		},
		"a wrong step": {
			operator: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }),
			steps:    []Step{Merge(configMap("nobody"), `{"data":{"a":"b"}}`)},
			want:     []string{`step 1, "change nobody`, "not found"},
		},
		"an expectation that does not hold": {
			operator: configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }),
			steps:    []Step{Create(configMap("a")).Becomes(configMap("a"), "Ready")},
			want:     []string{`step 1, "create a"`, "came to rest but", "no condition Ready", "-fault.calls shows all calls"},
		},
		"an expectation that does not hold, with the calls that led there": {
			operator: configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
				return client.IgnoreAlreadyExists(c.Create(ctx, configMap("b")))
			}),
			steps: []Step{Create(configMap("a")).Gone(configMap("b"))},
			want:  []string{"b still exists", `scenario "bad", the last calls:`, "step  create a", "create configmaps default/b  ok"},
		},
		"an owner that fits nothing": {
			operator: func(mgr ctrl.Manager, env *Env) error {
				return configMaps(func(ctx context.Context, _ client.Client, cm *corev1.ConfigMap) error {
					if cm.Name != "a" {
						return nil
					}
					_, err := Write(ctx, env, "put", func(s *shelf) (string, error) { return s.put("box-1", box{owner: cm.Name}), nil })
					return err
				})(mgr, env)
			},
			want: []string{`external resource box box-1 has the owner "a"`, "fits no object", `or "default/a" for configmaps default/a`, "empty Owner"},
		},
		"an operator that cannot be set up": {
			operator: func(ctrl.Manager, *Env) error { return fmt.Errorf("no licence") },
			want:     []string{"set up the operator", "no licence"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			steps := c.steps
			if steps == nil {
				steps = []Step{Create(configMap("a"))}
			}
			patience := time.Minute
			if c.hangs {
				patience = time.Second
			}
			_, err := explored(t, Scenario{Name: "bad", Operator: Operator{SetUp: c.operator}, ExternalAPI: newShelf, Steps: steps}, patience)
			if err == nil {
				t.Fatal("the exploration came to an end as if nothing was wrong")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q:\n%v", part, err)
				}
			}
		})
	}
}

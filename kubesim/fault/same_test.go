package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// atOnce is an operator that in one pass does something for each of eight objects at the same time, in goroutines that
// start in a random order.
func atOnce(detached bool, do func(ctx context.Context, c client.Client, env *Env, n int) error) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, env *Env) error {
		return configMaps(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
			if cm.Name != "a" {
				return nil
			}
			if detached {
				ctx = context.WithoutCancel(bare{ctx})
			}
			var all sync.WaitGroup
			errs := make([]error, 8)
			for _, n := range rand.Perm(len(errs)) {
				all.Go(func() { errs[n] = do(ctx, c, env, n) })
			}
			all.Wait()
			return errors.Join(errs...)
		})(mgr, env)
	}
}

// TestAtOnce proves that calls which one pass makes at the same time are made in one order, and that each of them can
// be disturbed.
func TestAtOnce(t *testing.T) {
	makeSecret := func(ctx context.Context, c client.Client, n int) error {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", n), Namespace: "default"}}
		return client.IgnoreAlreadyExists(c.Create(ctx, made))
	}
	for name, do := range map[string]func(context.Context, client.Client, *Env, int) error{
		"creates": func(ctx context.Context, c client.Client, _ *Env, n int) error { return makeSecret(ctx, c, n) },
		"generated names": func(ctx context.Context, c client.Client, _ *Env, n int) error {
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				GenerateName: "s-", Namespace: "default", Labels: map[string]string{"n": strconv.Itoa(n)},
			}}
			return c.Create(ctx, made)
		},
		"patches": func(ctx context.Context, c client.Client, _ *Env, n int) error {
			return c.Patch(ctx, configMap("a"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"n%d":"x"}}`, n)))
		},
		"lists": func(ctx context.Context, c client.Client, _ *Env, n int) error {
			if err := c.List(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"n": strconv.Itoa(n)}); err != nil {
				return err
			}
			return makeSecret(ctx, c, n)
		},
		"calls over HTTP": func(ctx context.Context, c client.Client, env *Env, n int) error {
			vendor := &http.Client{Transport: HTTP(env, func(*shelf) http.Handler {
				return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			})}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://vendor/boxes", strings.NewReader(strconv.Itoa(n)))
			if err != nil {
				return err
			}
			answer, err := vendor.Do(r)
			if err != nil {
				return err
			}
			if err := answer.Body.Close(); err != nil || n%2 == 0 {
				return err
			}
			return makeSecret(ctx, c, n)
		},
	} {
		for _, detached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, detached %t", name, detached), func(t *testing.T) {
				e, w := prepared(t, Scenario{
					Name: "at-once", ExternalAPI: newShelf, Steps: []Step{Create(configMap("a"))}, Races: []Step{},
					Operator: Operator{SetUp: atOnce(detached, do)},
				})
				for range 10 {
					again := w.Play(t, run.Job{})
					if what := e.firstDifference(e.reference.Run, again.Run); what != "" {
						t.Fatalf("two starts differ: %s", what)
					}
					if len(again.Learned.Chances) > 0 {
						t.Fatalf("%q were left to chance", again.Learned.Chances)
					}
				}
			})
		}
	}
}

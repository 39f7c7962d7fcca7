package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
					read := func() error { return mgr.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}) }
					if detached {
						ctx = context.WithoutCancel(bare{ctx})
						read = elsewhere(read)
					}
					if err := read(); err != nil {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"of": "a"}}}
					return reconcile.Result{}, client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, made))
				})))
		}
		return errors.Join(errs...)
	}
}

// elsewhere returns a function that calls f in a goroutine of its own.
func elsewhere(f func() error) func() error {
	return func() error {
		done := make(chan error)
		go func() { done <- f() }()
		return <-done
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
	e, err := newExploration(t, &s, options{})
	if err != nil {
		t.Fatal(err)
	}
	if w, err = e.simulation.Hire(); err != nil {
		t.Fatal(err)
	}
	const chance = "get *v1.ConfigMap default/a"
	if chances := w.Play(t, run.Job{}).Learned.Chances; !slices.Contains(chances, chance) {
		t.Errorf("%q were left to chance, want %q", chances, chance)
	}
	for range 10 { // until chance has it; it may have it the same way each time
		if _, err := explored(t, s, time.Minute, Crashes); err != nil {
			if want := "waited at the same time to " + chance; !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			return
		}
	}
}

// TestOwnCaches proves that the first pass of an operator with caches of its own begins when all of them are full.
func TestOwnCaches(t *testing.T) {
	setUp := func(mgr ctrl.Manager, env *Env) error {
		own, err := cache.New(mgr.GetConfig(), cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
		if err != nil {
			return err
		}
		return errors.Join(mgr.Add(own), configMaps(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil })(mgr, env))
	}
	s := Scenario{Name: "own-caches", Before: []Step{Create(configMap("a"))}, Steps: []Step{Wait(time.Minute)}, Races: []Step{}, Operator: Operator{SetUp: setUp}}
	_, w := prepared(t, s)
	r := w.Play(t, run.Job{}).Run
	if len(r.Passes) == 0 {
		t.Fatal("no pass began")
	}
	if after := r.Passes[0].Begin.Sub(r.Steps[0].At); after < time.Second {
		t.Errorf("the first pass began after %s, want a second or more", after)
	}
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

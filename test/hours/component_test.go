package hours

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/kubesim"
	"github.com/trimtab-dev/trimtab/testenv"
)

// factory is a simulated cluster and an operator of Products in a bubble of simulated time. It is the
// generator, too.
type factory struct {
	t        *testing.T
	client   client.Client
	requests *testenv.Log

	mu     sync.Mutex
	render func() ([]client.Object, error) // instead of what the spec lists
	at     []time.Time                     // of the passes
}

const factoryName = "factory.test"

// inFactory runs a test in a bubble of simulated time. The operator has its defaults.
func inFactory(t *testing.T, f func(*factory), hooks ...func(*factory, *component.Reconciler[*product.Product])) {
	t.Helper()
	inFactoryWith(t, component.ReconcilerOptions{}, f, hooks...)
}

func inFactoryWith(t *testing.T, o component.ReconcilerOptions, f func(*factory), hooks ...func(*factory, *component.Reconciler[*product.Product])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := kubesim.New(t, kubesim.Options{CRDs: definitions(t, product.CRDs, bundle.CRDs)})
		scheme := runtime.NewScheme()
		must(t, errors.Join(clientgoscheme.AddToScheme(scheme), product.AddToScheme(scheme), bundle.AddToScheme(scheme)))
		k, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
		must(t, err)
		w := &factory{t: t, client: k}
		cfg, requests := testenv.Requests(cluster.Config())
		w.requests = requests
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(time.Duration),
		})
		must(t, err)
		r := component.NewReconciler[*product.Product](factoryName, w, o)
		for _, add := range hooks {
			add(w, r)
		}
		must(t, r.SetupWithManager(cold{mgr}))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- mgr.Start(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		w.pass(time.Second)
		f(w)
	})
}

// definitions are the files of several folders.
func definitions(t *testing.T, all ...fs.FS) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	for n, one := range all {
		must(t, fs.WalkDir(one, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(one, path)
			out[fmt.Sprintf("%d-%s", n, d.Name())] = &fstest.MapFile{Data: data}
			return err
		}))
	}
	return out
}

// Generate implements component.Generator.
func (w *factory) Generate(_ context.Context, _, _ string, parameters component.Unstructurable) ([]client.Object, error) {
	w.mu.Lock()
	render := w.render
	w.mu.Unlock()
	if render != nil {
		return render()
	}
	spec, _ := parameters.(*product.Spec)
	return product.Render(spec)
}

// Version implements component.Versioned. It is asked for in every pass over a component that is not deleted.
func (w *factory) Version() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(w.at, time.Now())
	if w.render != nil {
		return "other"
	}
	return ""
}

// renders has the generator return something else.
func (w *factory) renders(f func() ([]client.Object, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.render = f
}

// gaps are the times between passes since the last call of gaps.
func (w *factory) gaps() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []time.Duration
	for n := 1; n < len(w.at); n++ {
		out = append(out, w.at[n].Sub(w.at[n-1]))
	}
	w.at = w.at[max(0, len(w.at)-1):]
	return out
}

// pass lets simulated time pass, and whatever is due in it happen.
func (w *factory) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// create makes a component.
func (w *factory) create(name string, spec product.Spec, objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		data, err := json.Marshal(o)
		must(w.t, err)
		spec.Objects = append(spec.Objects, runtime.RawExtension{Raw: data})
	}
	must(w.t, w.client.Create(w.t.Context(), &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}))
}

// patch merges a body into an object.
func (w *factory) patch(obj client.Object, name, body string) {
	w.t.Helper()
	obj.SetNamespace("default")
	obj.SetName(name)
	must(w.t, w.client.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))))
}

// is checks the state of a component and its reason.
func (w *factory) is(name, state, reason string) *product.Product {
	w.t.Helper()
	p := &product.Product{}
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, p))
	ready := meta.FindStatusCondition(p.Status.Conditions, api.ConditionReady)
	if ready == nil || p.Status.State != state || ready.Reason != reason {
		w.t.Errorf("%s is %s, conditions %+v, want %s (%s): %s", name, p.Status.State, p.Status.Conditions, state, reason, p.Status.Message)
	}
	return p
}

// slow is a dependent that never becomes ready.
func slow(name string) *bundle.Bundle {
	return &bundle.Bundle{
		TypeMeta:   metav1.TypeMeta{APIVersion: "bundles.trimtab.dev/v1", Kind: "Bundle"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{factoryName + "/status-hint": "has-ready-condition"}},
	}
}

func one() *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "one"}}
}

func interval(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// TestPlainErrors: what fails is retried with growing delays.
func TestPlainErrors(t *testing.T) {
	failing := errors.New("no luck")
	t.Run("004-50 of a generator", func(t *testing.T) {
		inFactory(t, func(w *factory) {
			w.renders(func() ([]client.Object, error) { return nil, failing })
			w.create("a", product.Spec{}, one())
			growing(w)
			w.renders(nil)
			w.patch(&product.Product{}, "a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"1"}}}`)
			w.pass(time.Second)
			w.is("a", "Ready", "Ready")
			w.renders(func() ([]client.Object, error) { return nil, failing })
			w.patch(&product.Product{}, "a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"2"}}}`)
			w.pass(0)
			w.gaps()
			growing(w) // from the start
		})
	})
	t.Run("004-50 of a hook", func(t *testing.T) {
		inFactory(t, func(w *factory) {
			w.create("a", product.Spec{}, one())
			growing(w)
		}, func(w *factory, r *component.Reconciler[*product.Product]) {
			r.WithPreReconcileHook(func(context.Context, client.Client, *product.Product) error {
				_ = w.Version() // the pass ends before it is asked for
				return failing
			})
		})
	})
}

// growing checks that the delays between passes double from a second to ten minutes, with a tenth of
// jitter.
func growing(w *factory) {
	w.t.Helper()
	w.pass(90 * time.Minute)
	w.is("a", "Error", "Error")
	gaps := w.gaps()
	if len(gaps) < 16 {
		w.t.Fatalf("gaps %v, want at least 16", gaps)
	}
	for n, gap := range gaps {
		want := min(time.Second<<n, 10*time.Minute)
		if gap < want || gap > want+want/10 {
			w.t.Errorf("the delay before retry %d is %s, want %s to %s", n+1, gap, want, want+want/10)
		}
	}
}

// TestRetriableErrors: an error can say when it is to be retried.
func TestRetriableErrors(t *testing.T) {
	t.Run("004-51 exactly after the error's delay", func(t *testing.T) {
		inFactory(t, func(w *factory) {
			const after = 37 * time.Second
			busy := component.NewRetriableError(errors.New("busy"), new(after))
			err := errors.Join(errors.New("other"), fmt.Errorf("a: %w", fmt.Errorf("b: %w", errors.Join(busy, errors.New("another")))))
			w.renders(func() ([]client.Object, error) { return nil, err })
			w.create("a", product.Spec{}, one())
			w.pass(10*after + time.Second)
			w.is("a", "Pending", "Retrying")
			gaps := w.gaps()
			for _, gap := range gaps {
				if gap != after {
					t.Errorf("retried after %s, want %s", gap, after)
				}
			}
			if len(gaps) != 10 {
				t.Errorf("%d retries, want 10", len(gaps))
			}
			w.renders(func() ([]client.Object, error) { return nil, errors.New("no luck") })
			w.pass(after)
			w.gaps()
			growing(w) // these count from the start
		})
	})
}

// TestRequeue: a component that is ready is reconciled again after an interval, which costs nothing.
func TestRequeue(t *testing.T) {
	for name, test := range map[string]struct {
		spec product.Spec
		want time.Duration
	}{
		"10 minutes":      {product.Spec{}, 10 * time.Minute},
		"what it says":    {product.Spec{RequeueSpec: api.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}}, 3 * time.Minute},
		"the spec's hour": {product.Spec{RequeueSpec: api.RequeueSpec{RequeueInterval: interval(time.Hour)}}, time.Hour},
	} {
		t.Run("004-53 "+name, func(t *testing.T) {
			inFactory(t, func(w *factory) {
				w.create("a", test.spec, one())
				w.pass(time.Second)
				w.is("a", "Ready", "Ready")
				w.gaps()
				w.requests.Reset()
				w.pass(11 * test.want)
				gaps := w.gaps()
				if len(gaps) != 10 {
					t.Errorf("%d passes, want 10", len(gaps))
				}
				for _, gap := range gaps {
					if gap <= test.want || gap > test.want+test.want/20 {
						t.Errorf("reconciled after %s, want %s and at most a twentieth more", gap, test.want)
					}
				}
				for _, r := range w.requests.All() {
					if r.Verb != "watch" {
						t.Errorf("request %s", r)
					}
				}
			})
		})
	}
}

// TestTimeouts: a component whose dependents are not ready in time is in state Error.
func TestTimeouts(t *testing.T) {
	t.Run("004-56 the timeout is the component's, or its requeue interval", func(t *testing.T) {
		inFactory(t, func(w *factory) {
			tests := map[string]struct {
				spec product.Spec
				want time.Duration
			}{
				"timeout": {product.Spec{TimeoutSpec: api.TimeoutSpec{Timeout: interval(3 * time.Minute)}, RequeueSpec: api.RequeueSpec{RequeueInterval: interval(time.Hour)}}, 3 * time.Minute},
				"requeue": {product.Spec{RequeueSpec: api.RequeueSpec{RequeueInterval: interval(7 * time.Minute)}}, 7 * time.Minute},
				"neither": {product.Spec{}, 10 * time.Minute},
			}
			for name, test := range tests {
				w.create(name, test.spec, slow(name))
			}
			passed := time.Duration(0)
			for _, at := range []time.Duration{3 * time.Minute, 7 * time.Minute, 10 * time.Minute} {
				for _, shift := range []time.Duration{-time.Second, time.Second} {
					w.pass(at + shift - passed)
					passed = at + shift
					for name, test := range tests {
						if test.want < passed {
							w.is(name, "Error", "Timeout")
						} else {
							w.is(name, "Processing", "Processing")
						}
					}
				}
			}
		})
	})
}

// TestTimeoutStartsAgain: the time counts from the last change of the component or of its manifests.
func TestTimeoutStartsAgain(t *testing.T) {
	settings := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "in"}, Data: map[string]string{"a": "1"}}
	}
	for name, test := range map[string]struct {
		change func(*factory)
		again  bool
	}{
		"a the component changes":     {func(w *factory) { w.patch(&product.Product{}, "a", `{"spec":{"name":"b"}}`) }, true},
		"b what it refers to changes": {func(w *factory) { w.patch(&corev1.ConfigMap{}, "in", `{"data":{"a":"2"}}`) }, true},
		"a pass that changes nothing": {func(w *factory) {
			w.patch(&product.Product{}, "a", `{"metadata":{"annotations":{"trimtab.dev/reconcile":"1"}}}`)
		}, false},
		"a change that does not affect anything": {func(w *factory) { w.patch(&product.Product{}, "a", `{"metadata":{"labels":{"a":"1"}}}`) }, false},
	} {
		t.Run("004-55 "+name, func(t *testing.T) {
			inFactory(t, func(w *factory) {
				const timeout = 10 * time.Minute
				must(w.t, w.client.Create(w.t.Context(), settings()))
				w.create("a", product.Spec{Settings: &api.ConfigMapReference{Name: "in"}, TimeoutSpec: api.TimeoutSpec{Timeout: interval(timeout)}}, slow("slow"))
				w.pass(timeout * 8 / 10)
				w.is("a", "Processing", "Processing")
				test.change(w)
				w.pass(timeout*2/10 + time.Second)
				if !test.again {
					w.is("a", "Error", "Timeout")
					return
				}
				w.is("a", "Processing", "Processing")
				w.pass(timeout*8/10 - 2*time.Second)
				w.is("a", "Processing", "Processing")
				w.pass(2 * time.Second)
				w.is("a", "Error", "Timeout")
			})
		})
	}
}

// TestLastObservedAt: how often the status says when it was written.
func TestLastObservedAt(t *testing.T) {
	// observed returns status.lastObservedAt, which must not decrease.
	observed := func(w *factory, last time.Time) time.Time {
		w.t.Helper()
		p := w.is("a", "Ready", "Ready")
		now := p.Status.LastObservedAt
		if now == nil || now.Time.Before(last) {
			w.t.Fatalf("observed at %v after %s", now, last)
		}
		return now.Time
	}
	t.Run("004-09 with another change of the status", func(t *testing.T) {
		inFactory(t, func(w *factory) {
			w.create("a", product.Spec{}, one())
			w.pass(time.Second)
			first := observed(w, time.Time{})
			w.pass(5 * time.Hour)
			if again := observed(w, first); !again.Equal(first) {
				w.t.Errorf("observed at %s without a change since %s", again, first)
			}
			w.patch(&product.Product{}, "a", `{"spec":{"name":"b"}}`)
			w.pass(time.Second)
			if again := observed(w, first); again.Sub(first) < 5*time.Hour {
				w.t.Errorf("observed at %s after a change", again)
			}
		})
	})
	t.Run("004-09 LastObservedAtEvery", func(t *testing.T) {
		inFactoryWith(t, component.ReconcilerOptions{LastObservedAtEvery: time.Minute}, func(w *factory) {
			w.create("a", product.Spec{}, one())
			w.pass(time.Second)
			last := observed(w, time.Time{})
			for range 30 {
				w.pass(time.Minute)
				now := observed(w, last)
				if now.Sub(last) != time.Minute {
					w.t.Errorf("observed at %s and then at %s", last, now)
				}
				last = now
			}
		})
	})
}

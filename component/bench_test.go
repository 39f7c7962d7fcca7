package component_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	metrics.RateLimiterLatency = &limited{hosts: map[string]int{}}
	if task := os.Getenv(markerTask); task != "" {
		os.Exit(markerProcess(task))
	}
	os.Exit(m.Run())
}

type options = component.Options[*bundle.Bundle]

// bench is a namespace of a real API server with an operator of Bundles.
type bench struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	// operator is the name of the operator, and requests are what it sent.
	operator string
	requests *testenv.Log
	renderer component.Renderer[*bundle.Bundle]
	options  options
	tune     func(*component.Controller[*bundle.Bundle])
	fences   int
	stop     func()
}

// newBench starts an operator that is quick to retry.
func newBench(t *testing.T, change ...func(*options)) *bench {
	t.Helper()
	b := prepareBench(t, change...)
	b.start()
	return b
}

// prepareBench returns a bench whose operator has not been started.
func prepareBench(t *testing.T, change ...func(*options)) *bench {
	t.Helper()
	return prepareBenchOn(t, testenv.Start(t), change...)
}

// prepareBenchOn is prepareBench for another API server than the one that all tests share.
func prepareBenchOn(t *testing.T, cfg *rest.Config, change ...func(*options)) *bench {
	t.Helper()
	testenv.InstallFS(t, cfg, bundle.CRDs)
	counted, requests := testenv.Requests(cfg)
	b := &bench{
		t: t, cfg: counted, requests: requests,
		admin: testenv.Client(t, cfg, bundle.AddToScheme), namespace: testenv.Namespace(t, cfg),
	}
	b.operator = b.namespace + ".op.test"
	b.renderer = component.RenderFunc[*bundle.Bundle](render)
	b.tune = func(*component.Controller[*bundle.Bundle]) {}
	b.options = options{Name: b.operator, HandoverGrace: -1, Loop: loop.Options[*bundle.Bundle]{
		Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
	}}
	for _, f := range change {
		f(&b.options)
	}
	return b
}

// render returns the objects of a Bundle's spec.
func render(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
	objects, err := r.Component.Render()
	return component.Objects(objects...), err
}

// versioned is a renderer whose version is asked for in every pass.
type versioned struct {
	component.RenderFunc[*bundle.Bundle]

	version func() string
}

func (v versioned) Version() string { return v.version() }

// start runs the operator until the test ends or b.stop is called. Starting it again after that is a new
// process as far as the framework can tell.
func (b *bench) start() {
	b.t.Helper()
	mgr, stop := runManager(b.t, b.cfg, managerOptions(b.t, b.namespace, bundle.AddToScheme), func(mgr ctrl.Manager) error {
		c := component.New(b.renderer, b.options)
		b.tune(c)
		return c.SetupWithManager(mgr)
	})
	b.stop = stop
	if !mgr.GetCache().WaitForCacheSync(b.t.Context()) {
		b.t.Fatal("the cache did not sync")
	}
}

// managerOptions are those of a manager that caches one namespace and logs nothing.
func managerOptions(t *testing.T, namespace string, add ...func(*runtime.Scheme) error) ctrl.Options {
	t.Helper()
	return ctrl.Options{
		Scheme: scheme(t, append(add, clientgoscheme.AddToScheme)...), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

// runManager runs a manager with the controllers that setup adds, until stop is called or the test ends.
func runManager(t *testing.T, cfg *rest.Config, o ctrl.Options, setup func(ctrl.Manager) error) (mgr ctrl.Manager, stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(stop)
	return mgr, stop
}

// create makes the component "a" of these objects.
func (b *bench) create(objects ...client.Object) *bundle.Bundle {
	b.t.Helper()
	return b.createAs("a", objects...)
}

func (b *bench) createAs(name string, objects ...client.Object) *bundle.Bundle {
	b.t.Helper()
	obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	obj.Spec.Objects = b.raw(objects...)
	if err := b.admin.Create(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
	return obj
}

// raw encodes objects for a spec.
func (b *bench) raw(objects ...client.Object) []runtime.RawExtension {
	b.t.Helper()
	var out []runtime.RawExtension
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			b.t.Fatal(err)
		}
		out = append(out, runtime.RawExtension{Raw: data})
	}
	return out
}

// change gives the component "a" other objects.
func (b *bench) change(objects ...client.Object) {
	b.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": b.raw(objects...)}})
	if err != nil {
		b.t.Fatal(err)
	}
	obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}
	if err := b.admin.Patch(b.t.Context(), obj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}

// delete deletes the component "a".
func (b *bench) delete() {
	b.t.Helper()
	obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}
	if err := b.admin.Delete(b.t.Context(), obj); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until the component "a" is as ok says.
func (b *bench) await(why string, ok func(*bundle.Bundle) bool) *bundle.Bundle {
	b.t.Helper()
	return testenv.Wait(b.t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}, why, ok)
}

// ready waits until the component "a" is ready as its newest spec asks.
func (b *bench) ready() *bundle.Bundle {
	b.t.Helper()
	return b.await("ready", isReady)
}

func isReady(o *bundle.Bundle) bool {
	return o.Status.State == component.StateReady && o.Status.AppliedGeneration == o.Generation &&
		meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady)
}

// fence waits until the operator has seen all that happened so far. That costs writes of the component's
// status: [fence] of them.
func (b *bench) fence() {
	b.t.Helper()
	b.fences++
	token := fmt.Sprintf("fence-%d", b.fences)
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationReconcile, token))
	b.await(token, func(o *bundle.Bundle) bool { return o.Status.HandledReconcile == token })
}

// fence is how many writes of the component a fence costs.
const fence = 1

// gone waits until the component "a" is gone.
func (b *bench) gone() {
	b.t.Helper()
	testenv.Gone(b.t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}, "deleted")
}

// configMap is a dependent in the namespace of its component.
func configMap(name, value string, annotations ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value},
	}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, annotations[i], annotations[i+1])
	}
	return m
}

// live returns a ConfigMap as the server has it.
func (b *bench) live(name string) *corev1.ConfigMap {
	b.t.Helper()
	m := &corev1.ConfigMap{}
	if err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

// patch merges a body into an object as a user would.
func (b *bench) patch(apiVersion, kind, name, body string) {
	b.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(b.namespace)
	u.SetName(name)
	if err := b.admin.Patch(b.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// sent returns the operator's requests since the log was reset, by what they are: writes of dependents,
// writes of components, and reads of either. Watches, discovery and the event are left out.
func (b *bench) sent() counts {
	var c counts
	for _, r := range b.requests.All() {
		switch {
		case r.Resource == "" || r.Resource == "events" || r.Verb == "watch" || r.Resource == "leases":
		case r.IsWrite() && r.Resource == "bundles":
			c.Component++
		case r.IsWrite():
			c.Dependents++
		case r.Resource == "namespaces" && r.Name == metav1.NamespaceSystem: // once per process
		case r.Resource == "bundles" && r.Verb == "list":
		default:
			c.Reads = append(c.Reads, r.String())
		}
	}
	return c
}

// counts are numbers of requests.
type counts struct {
	Dependents, Component int
	Reads                 []string
}

func (c counts) String() string {
	return fmt.Sprintf("%d writes of dependents, %d of the component, reads: %s", c.Dependents, c.Component, strings.Join(slices.Sorted(slices.Values(c.Reads)), ", "))
}

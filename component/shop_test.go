package component_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

type reconciler = component.Reconciler[*product.Product]

// shop is a namespace of a real API server with an operator of Products.
type shop struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	operator  string
	requests  *testenv.Log
	generator *generator
	builder   component.SchemeBuilder // of the generator
	options   component.ReconcilerOptions
	tune      func(*component.Options[*product.Product])
	hooks     func(*reconciler)
	manager   func(*ctrl.Options)
	mgr       ctrl.Manager
	stop      func()
}

// newShop returns a shop whose operator has not been started.
func newShop(t *testing.T) *shop {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	counted, requests := testenv.Requests(cfg)
	s := &shop{
		t: t, cfg: counted, requests: requests, admin: testenv.Client(t, cfg, product.AddToScheme),
		namespace: testenv.Namespace(t, cfg), generator: &generator{},
		hooks: func(*reconciler) {}, manager: func(*ctrl.Options) {},
	}
	s.operator = s.namespace + ".shop.test"
	return s
}

// start runs the operator until the test ends, as the main function of a kubebuilder project does.
func (s *shop) start() *shop {
	s.t.Helper()
	s.run(product.AddToScheme, func(mgr ctrl.Manager) error {
		var g component.Generator = s.generator
		if s.builder != nil {
			g = builder{s.generator, s.builder}
		}
		r := component.NewTunedReconciler(s.operator, g, s.options, tuned(s.tune))
		s.hooks(r)
		return r.SetupWithManager(mgr)
	})
	return s
}

// tuned makes an operator that is quick to retry, and changes what a test says.
func tuned[T component.Component](change func(*component.Options[T])) func(*component.Options[T]) {
	return func(o *component.Options[T]) {
		o.Loop.Retry = loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}
		o.HandoverGrace = -1
		if change != nil {
			change(o)
		}
	}
}

// startAs runs an operator whose components have another type in Go.
func startAs[T component.Component](s *shop, of T, list client.ObjectList, hooks func(*component.Reconciler[T]), change func(*component.Options[T])) {
	s.t.Helper()
	add := func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypeWithName(product.GroupVersion.WithKind("Product"), of)
		scheme.AddKnownTypeWithName(product.GroupVersion.WithKind("ProductList"), list)
		metav1.AddToGroupVersion(scheme, product.GroupVersion)
		return nil
	}
	s.run(add, func(mgr ctrl.Manager) error {
		r := component.NewTunedReconciler(s.operator, component.Generator(s.generator), s.options, tuned(change))
		if hooks != nil {
			hooks(r)
		}
		return r.SetupWithManager(mgr)
	})
}

// run runs a manager with the controllers that setup adds.
func (s *shop) run(add func(*runtime.Scheme) error, setup func(ctrl.Manager) error) {
	s.t.Helper()
	o := managerOptions(s.t, s.namespace, add)
	s.manager(&o)
	_, s.stop = runManager(s.t, s.cfg, o, func(mgr ctrl.Manager) error {
		s.mgr = mgr
		return setup(mgr)
	})
}

// create makes the component "a".
func (s *shop) create(spec product.Spec, objects ...client.Object) *product.Product {
	s.t.Helper()
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			s.t.Fatal(err)
		}
		spec.Objects = append(spec.Objects, runtime.RawExtension{Raw: data})
	}
	obj := &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}, Spec: spec}
	if err := s.admin.Create(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
	return obj
}

// patch merges a body into the component "a".
func (s *shop) patch(body string) {
	s.t.Helper()
	if err := s.admin.Patch(s.t.Context(), s.named("a"), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) named(name string) *product.Product {
	return &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

func (s *shop) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

// await waits until the component "a" is as ok says.
func (s *shop) await(why string, ok func(*product.Product) bool) *product.Product {
	s.t.Helper()
	return testenv.Wait(s.t, s.admin, s.named("a"), why, ok)
}

// is waits until the component "a" has a state for a reason.
func (s *shop) is(state, reason string) *product.Product {
	s.t.Helper()
	return s.await(state+" ("+reason+")", func(p *product.Product) bool {
		return p.Status.State == state && ready(p).Reason == reason && p.Status.ObservedGeneration == p.Generation
	})
}

// ready returns the condition Ready.
func ready(p *product.Product) metav1.Condition {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}
	return metav1.Condition{}
}

// delete deletes the component "a".
func (s *shop) delete() {
	s.t.Helper()
	if err := s.admin.Delete(s.t.Context(), s.named("a")); err != nil {
		s.t.Fatal(err)
	}
}

// call is what a generator was called with.
type call struct {
	namespace, name string
	parameters      component.Unstructurable
}

// generator renders what specs list, or what a test says.
type generator struct {
	mu    sync.Mutex
	do    func(context.Context, call) ([]client.Object, error)
	calls []call
	asked int
	text  string
	seen  chan<- struct{} // gets a token for each pass, as long as there is room
}

func (g *generator) Generate(ctx context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	c := call{namespace, name, parameters}
	g.mu.Lock()
	g.calls = append(g.calls, c)
	do := g.do
	g.mu.Unlock()
	if do != nil {
		return do(ctx, c)
	}
	spec, _ := parameters.(*product.Spec)
	return product.Render(spec)
}

// builder is a generator that adds to the scheme.
type builder struct {
	*generator
	component.SchemeBuilder
}

// listOf is a list of components of another type in Go.
type listOf[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *listOf[T]) DeepCopyObject() runtime.Object {
	return &listOf[T]{l.TypeMeta, *l.DeepCopy(), slices.Clone(l.Items)}
}

// Version implements component.Versioned. It is asked for in each pass.
func (g *generator) Version() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	select {
	case g.seen <- struct{}{}:
	default:
	}
	return g.text
}

// set changes what is generated, which only the version says.
func (g *generator) set(version string, do func(context.Context, call) ([]client.Object, error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text, g.do = version, do
}

// counts returns how many passes asked, and how often something was generated.
func (g *generator) counts() (passes, renderings int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked, len(g.calls)
}

func (g *generator) last() call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[len(g.calls)-1]
}

package helm_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// chartOf returns a chart of these files in the folder "chart".
func chartOf(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"chart/Chart.yaml": {Data: []byte("apiVersion: v2\nname: demo\nversion: 1.0.0\n")}}
	for name, text := range files {
		fsys["chart/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// render renders a chart of these files, as YAML.
func render(t *testing.T, files map[string]string, r helm.Release) (string, error) {
	t.Helper()
	g, err := helm.NewGenerator(chartOf(files), "chart", helm.Options{})
	if err != nil {
		return "", err
	}
	set, err := g.Render(t.Context(), r)
	if err != nil {
		return "", err
	}
	objects, err := set.Annotated("op.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(objects))
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = string(text)
	}
	return strings.Join(out, "---\n"), nil
}

// site is a namespace of a real API server with an operator of Products, which are made from a chart. The values of a
// Product are the first of its objects.
type site struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	operator  string
	requests  *testenv.Log
	stop      func()
	options   helm.Options
	// requeue is the time between two passes without an event; zero means the default. seen gets a token for each pass.
	requeue time.Duration
	// grace is that of handovers; negative means none, which is what newSite sets.
	grace time.Duration
	kinds []schema.GroupVersionKind
	// guarded components cannot lose most of their dependents at a time.
	guarded bool
	seen    chan struct{}
	// renderings counts how often the chart was rendered.
	renderings atomic.Int64
}

// counted is a renderer that counts passes.
type counted struct {
	component.Renderer[*product.Product]
	component.Versioned

	seen       chan<- struct{}
	renderings *atomic.Int64
}

// Render counts.
func (c counted) Render(ctx context.Context, r component.RenderRequest[*product.Product]) (component.Set, error) {
	c.renderings.Add(1)
	return c.Renderer.Render(ctx, r)
}

// Version is asked for in each pass.
func (c counted) Version() string {
	select {
	case c.seen <- struct{}{}:
	default:
	}
	return c.Versioned.Version()
}

// rests waits for passes that begin after now.
func (s *site) rests() {
	for range 5 {
		<-s.seen
	}
}

// newSite returns a site whose operator has not been started.
func newSite(t *testing.T) *site {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	counted, requests := testenv.Requests(cfg)
	s := &site{t: t, cfg: counted, requests: requests, admin: testenv.Client(t, cfg, product.AddToScheme), namespace: testenv.Namespace(t, cfg), stop: func() {}, grace: -1, seen: make(chan struct{})}
	s.operator = s.namespace + ".helm.test"
	runJobs(t, s.admin, s.namespace, nil)
	return s
}

// start stops the operator and starts it with a chart of these files.
func (s *site) start(files map[string]string) {
	s.t.Helper()
	s.stop()
	g, err := helm.NewGenerator(chartOf(files), "chart", s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, product.AddToScheme} {
		if err := add(scheme); err != nil {
			s.t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(s.cfg, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := component.New[*product.Product](counted{helm.NewRenderer(g, valuesOf), g, s.seen, &s.renderings}, s.componentOptions()).SetupWithManager(mgr); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("manager: %v", err)
		}
	}
	s.t.Cleanup(func() { s.stop() })
}

func (s *site) componentOptions() component.Options[*product.Product] {
	o := component.Options[*product.Product]{Name: s.operator, HandoverGrace: s.grace, PruneLimit: 1, RequeueInterval: s.requeue, Kinds: s.kinds}
	if s.guarded {
		o.PruneLimit = 0
	}
	o.Loop.Name = s.namespace
	o.Loop.Retry = loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}
	return o
}

func valuesOf(p *product.Product) (values map[string]any, err error) {
	if len(p.Spec.Objects) > 0 {
		err = json.Unmarshal(p.Spec.Objects[0].Raw, &values)
	}
	return values, err
}

// create makes the component "a" with these values, as JSON.
func (s *site) create(values string) {
	s.t.Helper()
	p := s.product()
	p.Spec.Objects = []runtime.RawExtension{{Raw: []byte(values)}}
	if err := s.admin.Create(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// update gives the component other values.
func (s *site) update(values string) { s.patch(s.product(), `{"spec":{"objects":[`+values+`]}}`) }

func (s *site) patch(obj client.Object, body string) {
	s.t.Helper()
	if err := s.admin.Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) product() *product.Product {
	return &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "a"}}
}

// ready waits until the component is, as its present spec asks.
func (s *site) ready() *product.Product {
	s.t.Helper()
	return testenv.Wait(s.t, s.admin, s.product(), "Ready", func(p *product.Product) bool {
		return p.Status.State == component.StateReady && p.Status.AppliedGeneration == p.Generation
	})
}

// says waits until the component's message contains a text.
func (s *site) says(text string) *product.Product {
	s.t.Helper()
	return testenv.Wait(s.t, s.admin, s.product(), text, func(p *product.Product) bool { return strings.Contains(p.Status.Message, text) })
}

// passes makes a pass over the component.
func (s *site) passes(token string) {
	s.t.Helper()
	s.patch(s.product(), `{"metadata":{"annotations":{"trimtab.dev/reconcile":"`+token+`"}}}`)
	testenv.Wait(s.t, s.admin, s.product(), "a pass", func(p *product.Product) bool { return p.Status.HandledReconcile == token })
}

// raw is a part of a spec.
func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func (s *site) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// data waits until a value of a ConfigMap is as wanted.
func (s *site) data(name, key, want string) {
	s.t.Helper()
	testenv.Wait(s.t, s.admin, &corev1.ConfigMap{ObjectMeta: s.named(name)}, key+" to be "+want, func(m *corev1.ConfigMap) bool { return m.Data[key] == want })
}

// written returns the names of the objects of some resources that the operator wrote, in order.
func (s *site) written(resources ...string) []string {
	var names []string
	for _, r := range s.requests.Select(func(r testenv.Request) bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }) {
		for _, resource := range resources {
			if r.Resource == resource {
				names = append(names, r.Verb+" "+r.Name)
			}
		}
	}
	return names
}

package children_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

type (
	child   = children.Child[*probe.Probe]
	options = children.Options[*probe.Probe]
)

// names of what the controller under test writes.
const (
	ownerKey  = "probe.probe.trimtab.dev/owner"
	digestKey = "probe.probe.trimtab.dev/digest"
	finalizer = "probe.probe.trimtab.dev/children"
)

// config returns a ConfigMap that says how large its owner is.
func configOf(name string) func(*probe.Probe) *corev1.ConfigMap {
	return func(p *probe.Probe) *corev1.ConfigMap {
		m := &corev1.ConfigMap{Data: map[string]string{"size": strings.Repeat("x", p.Spec.Size)}}
		if name != "" {
			m.Name = p.Name + "-" + name
		}
		return m
	}
}

func config1() child { return children.Named("config", configOf("")) }

// world is a namespace of a real API server with a controller of Probes that have children.
type world struct {
	t         *testing.T
	admin     client.WithWatch
	cfg       *rest.Config
	requests  *testenv.Log
	namespace string
	others    []string // namespaces that the controller watches besides
	strip     bool     // the cache keeps no managedFields and no data of Secrets
	stop      func()
	log       logr.Logger
	terms     loop.Terms

	mu    sync.Mutex
	calls []string    // names of the objects of passes that ended
	ended chan string // the same
}

func newWorld(t *testing.T, wrap ...transport.WrapperFunc) *world {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.CRDs)
	counted, requests := testenv.Requests(cfg)
	for _, f := range wrap {
		counted.Wrap(f)
	}
	return &world{
		t: t, admin: testenv.Client(t, cfg, probe.AddToScheme), cfg: counted, requests: requests,
		namespace: testenv.Namespace(t, cfg), ended: make(chan string, 1000),
		log: funcr.New(func(_, line string) {
			if strings.Contains(line, "trimtab panicked") { // the pass is repeated, and may come to what the test waits for
				t.Errorf("a bug of the loop: %s", line)
			}
		}, funcr.Options{}),
	}
}

// Record implements trace.Sink.
func (w *world) Record(r trace.Record) {
	if _, over := r.Event.(trace.End); over {
		w.mu.Lock()
		w.calls = append(w.calls, r.Object.Name)
		w.mu.Unlock()
		w.ended <- r.Object.Name
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{probe.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (w *world) manager() ctrl.Manager {
	w.t.Helper()
	namespaces := map[string]cache.Config{w.namespace: {}}
	for _, other := range w.others {
		namespaces[other] = cache.Config{}
	}
	o := ctrl.Options{
		Scheme: scheme(w.t), Logger: w.log, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: namespaces},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if w.strip {
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Secret{}: {Transform: func(in any) (any, error) {
			if s, ok := in.(*corev1.Secret); ok {
				s.Data = nil
			}
			return cache.TransformStripManagedFields()(in)
		}}}
	}
	mgr, err := ctrl.NewManager(w.cfg, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return mgr
}

// start runs a controller until the test ends or w.stop is called.
func (w *world) start(set *children.Set[*probe.Probe], o options) {
	w.t.Helper()
	mgr := w.manager()
	o.Loop.Trace = w
	c := children.New(set, o)
	c.Govern(w.terms)
	if err := c.SetupWithManager(mgr); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("manager: %v", err)
		}
	})
	w.t.Cleanup(w.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		w.t.Fatal("the cache did not sync")
	}
}

// next waits for the end of the next pass and returns the name of its object.
func (w *world) next() string {
	w.t.Helper()
	select {
	case name := <-w.ended:
		return name
	case <-time.After(poll.Patience):
		w.t.Fatal("there was no pass")
		return ""
	}
}

// passes returns the objects of the passes that ended since the last call of drain.
func (w *world) passes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

func (w *world) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = nil
	for len(w.ended) > 0 {
		<-w.ended
	}
}

func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(name string, size int) *probe.Probe {
	w.t.Helper()
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: probe.ProbeSpec{Size: size}}
	w.do(w.admin.Create(w.t.Context(), p))
	return p
}

// ready waits until a Probe is Ready as it is asked for now.
func (w *world) ready(p *probe.Probe) *probe.Probe {
	w.t.Helper()
	return w.reason(p, "Succeeded")
}

// reason waits until the condition Ready of a Probe has a reason.
func (w *world) reason(p *probe.Probe, reason string) *probe.Probe {
	w.t.Helper()
	return testenv.Wait(w.t, w.admin, p.DeepCopy(), "Ready to be "+reason, func(now *probe.Probe) bool {
		return slices.ContainsFunc(now.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == "Ready" && c.Reason == reason && c.ObservedGeneration >= p.Generation
		})
	})
}

// child is an empty ConfigMap of that name.
func (w *world) child(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// read reads an object live.
func read[C client.Object](w *world, obj C) C {
	w.t.Helper()
	w.do(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

func (w *world) patch(obj client.Object, body string) {
	w.t.Helper()
	w.do(w.admin.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))))
}

func (w *world) delete(obj client.Object) {
	w.t.Helper()
	w.do(w.admin.Delete(w.t.Context(), obj))
}

// sent returns the writes of the controller to objects of a resource, as "verb name code".
func (w *world) sent(resource string) []string {
	var out []string
	for _, r := range w.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == resource }) {
		out = append(out, strings.TrimSpace(r.Verb+" "+r.Name+" "+r.Subresource))
	}
	return out
}

// deletes returns the deletions that the controller asked for.
func (w *world) deletes() []testenv.Request {
	return w.requests.Select(func(r testenv.Request) bool { return strings.HasPrefix(r.Verb, "delete") })
}

// composer does what a test says before it applies children.
type composer struct {
	set   *children.Set[*probe.Probe]
	first func(ctx context.Context, r *loop.Run[*probe.Probe])
}

func (c composer) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	c.first(ctx, r)
	if o, pending := c.set.Apply(ctx, r).Pending(); pending {
		return o
	}
	return loop.Done()
}

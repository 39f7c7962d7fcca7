package looptest

import (
	"context"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// Controller is what loop.New, children.New and external.New return. That of component.New cannot run here: it learns
// of its dependents by watches of its own, which the server in memory does not serve. See package componenttest.
type Controller interface {
	SetupWithManager(manager.Manager) error
}

// Cluster describes the cluster in memory in which a test runs a controller.
type Cluster struct {
	// AddToScheme registers the test's kinds, besides those of Kubernetes. Nil adds none.
	AddToScheme func(*runtime.Scheme) error
	// CRDs are those of the test's kinds, as YAML files, usually embedded. They say which kinds are cluster-scoped, and which
	// status is a subresource. A kind without a CRD is namespaced, and its status is a subresource.
	CRDs fs.FS
	// Objects exist already, besides the namespace kube-system. They get a UID, and a generation if they have a spec, unless they have one.
	Objects []client.Object
	// Wrap are wrappers of the controller's connection, such as that of an [Injector].
	Wrap []func(http.RoundTripper) http.RoundTripper
	// Lags delay what the cache shows.
	Lags []*Lag
}

// Env runs passes of a controller in a cluster in memory. It runs a pass when the test says so, never by itself. Between
// passes, time passes as the test has it: in a bubble of testing/synctest, <-time.After(time.Hour) takes none.
type Env struct {
	t       testing.TB
	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	server  *server
	user    client.Client
	cluster Cluster
	process *process
}

// NewEnv starts c, as a process does, in a cluster. It fails the test if c cannot be set up.
func NewEnv(t testing.TB, c Controller, cluster Cluster) *Env {
	t.Helper()
	e := &Env{t: t, scheme: runtime.NewScheme(), cluster: cluster}
	must(t, clientgoscheme.AddToScheme(e.scheme))
	if cluster.AddToScheme != nil {
		must(t, cluster.AddToScheme(e.scheme))
	}
	k, err := kindsOf(e.scheme, cluster.CRDs)
	must(t, err)
	e.mapper = k.mapper
	// Its UID identifies a cluster.
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	e.server, err = newServer(t.Context(), e.scheme, k, append([]client.Object{system}, cluster.Objects...))
	must(t, err)
	direct, err := client.New(e.config(), client.Options{Scheme: e.scheme, Mapper: e.mapper})
	must(t, err)
	e.user = &user{direct, k}
	e.start(c)
	return e
}

// user is a client that says more about a missing namespace than client-go.
type user struct {
	client.Client
	kinds kinds
}

// Create implements client.Client.
func (u *user) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	kind, err := u.GroupVersionKindFor(obj)
	if err == nil {
		err = u.kinds.scoped(kind, obj)
	}
	if err != nil {
		return err
	}
	return u.Client.Create(ctx, obj, opts...)
}

// config is that of a new connection to the server.
func (e *Env) config() *rest.Config {
	return &rest.Config{Host: "http://in-memory", Transport: e.server, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal("looptest: ", err)
	}
}

// start runs a controller as a new process.
func (e *Env) start(c Controller) {
	e.t.Helper()
	cfg := e.config()
	p := &process{scheme: e.scheme, mapper: e.mapper, queue: newQueue()}
	for _, wrap := range e.cluster.Wrap {
		cfg.Wrap(wrap)
	}
	recorded, log := testenv.Requests(cfg) // what meets a fault is recorded, too
	p.config, p.log = recorded, log
	var err error
	p.http, err = rest.HTTPClientFor(recorded)
	must(e.t, err)
	p.view, err = newView(e.scheme, e.mapper, e.server, e.cluster.Lags)
	must(e.t, err)
	p.live, err = client.New(recorded, client.Options{HTTPClient: p.http, Scheme: e.scheme, Mapper: e.mapper})
	must(e.t, err)
	p.client, err = client.New(recorded, client.Options{HTTPClient: p.http, Scheme: e.scheme, Mapper: e.mapper, Cache: &client.CacheOptions{Reader: p.view}})
	must(e.t, err)
	if kinded, ok := c.(interface {
		GroupVersionKind(scheme *runtime.Scheme) (schema.GroupVersionKind, error)
	}); ok {
		p.kind, err = kinded.GroupVersionKind(e.scheme)
		must(e.t, err)
	}
	if tracing, ok := c.(interface{ TraceTo(trace.Sink) }); ok {
		tracing.TraceTo(p)
	}
	must(e.t, c.SetupWithManager(p))
	if p.passes == nil {
		e.t.Fatalf("looptest: %T has no queue that a test could have; pass what loop.New, children.New or external.New returns", c)
	}
	e.server.mu.Lock()
	e.server.changed = p.view.tell
	e.server.mu.Unlock()
	must(e.t, p.start(e.t.Context()))
	e.t.Cleanup(p.stop)
	e.process = p
}

// Client returns the client of a user of the cluster. It reads and writes past the cache; faults do not meet it, and
// its writes are not in any [Result].
func (e *Env) Client() client.Client { return e.user }

// Restart kills the process and starts another with c, which must be new. wrap are the wrappers of its connection.
func (e *Env) Restart(c Controller, wrap ...func(http.RoundTripper) http.RoundTripper) {
	e.t.Helper()
	e.process.stop()
	e.cluster.Wrap = wrap
	e.start(c)
}

// Vanish removes obj at once although it has finalizers, as the API server does if a deletion was in progress when they
// were written.
func (e *Env) Vanish(obj client.Object) {
	e.t.Helper()
	must(e.t, e.server.vanish(e.t.Context(), e.id(obj)))
}

func (e *Env) id(obj client.Object) objectID {
	e.t.Helper()
	kind, err := apiutil.GVKForObject(obj, e.scheme)
	must(e.t, err)
	return objectID{kind: kind, NamespacedName: client.ObjectKeyFromObject(obj)}
}

// Due returns after how long the next pass over obj is due; ok is false if only an event leads to one.
func (e *Env) Due(obj client.Object) (after time.Duration, ok bool) {
	return e.process.queue.due(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
}

// Pass runs a pass over obj now, whether one is due or not, and returns what came of it. Only the name of obj counts.
func (e *Env) Pass(obj client.Object) Result {
	e.t.Helper()
	must(e.t, e.server.scoped(e.id(obj).kind, obj))
	return e.pass(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
}

// Settle runs passes as long as one is due now, and returns them. It fails the test after a hundred.
func (e *Env) Settle() []Result {
	e.t.Helper()
	var results []Result
	for range 100 {
		e.process.view.settle()
		req, in, ok := e.process.queue.soonest()
		if !ok || in > 0 {
			return results
		}
		results = append(results, e.pass(req))
	}
	e.t.Fatalf("looptest: after 100 passes another one is due at once; the last was\n%s", results[len(results)-1])
	return nil
}

func (e *Env) pass(req reconcile.Request) Result {
	e.t.Helper()
	p := e.process
	p.view.settle()
	requests, events := len(p.log.All()), len(p.events.all())
	p.mu.Lock()
	p.trace = nil
	p.mu.Unlock()
	p.queue.take(req)
	result, err := p.passes.Reconcile(e.t.Context(), req)
	p.queue.ended(req, result, err)
	r := Result{Name: strings.TrimPrefix(req.String(), "/"), Err: err}
	p.mu.Lock()
	r.Trace = p.trace
	p.mu.Unlock()
	for _, rec := range r.Trace {
		switch e := rec.Event.(type) {
		case trace.Start:
			r.Attempt = e.Attempt
		case trace.End:
			r.Outcome = e.Outcome
		}
	}
	for _, w := range p.log.All()[requests:] {
		if w.IsWrite() {
			r.Writes = append(r.Writes, writeLine(w))
		}
	}
	for _, told := range p.events.all()[events:] {
		r.Events = append(r.Events, told.Type()+" "+told.Reason+" "+told.Note)
	}
	r.Next, r.Again = p.queue.due(req)
	e.observe(&r, req)
	return r
}

// observe adds what is to be seen of the object now.
func (e *Env) observe(r *Result, req reconcile.Request) {
	u := e.server.one(objectID{e.process.kind, req.NamespacedName})
	if u == nil {
		return
	}
	typed, err := e.scheme.New(e.process.kind)
	must(e.t, err)
	r.Object, err = asForm(typed, u)
	must(e.t, err)
	r.State, _, _ = unstructured.NestedString(u.Object, "status", "state")
	r.Message, _, _ = unstructured.NestedString(u.Object, "status", "message")
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		c := metav1.Condition{}
		if m, is := item.(map[string]any); is && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			r.Conditions = append(r.Conditions, strings.TrimSpace(c.Type+" "+string(c.Status)+" "+c.Reason+" "+c.Message))
		}
	}
	slices.Sort(r.Conditions)
}

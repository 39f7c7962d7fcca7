package external_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

type options = external.Options[*thing.Thing, *cloudClient]

// operatorTest is a namespace of a real API server, a cloud, and an operator between them.
type operatorTest struct {
	t         *testing.T
	cloud     *cloud
	admin     client.WithWatch
	cfg       *rest.Config
	requests  *testenv.Log
	namespace string
	driver    driver[*thing.Thing]
	options   options
	terms     loop.Terms
	trace     *recorder
	stop      func()
}

// recorder keeps what a controller traced.
type recorder struct {
	mu   sync.Mutex
	list []trace.Record
}

func (r *recorder) Record(x trace.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, x)
}

// events lists what was traced of one kind, about the object of that name or, without a name, about
// all.
func events[E trace.Event](r *recorder, name string) []E {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []E
	for _, x := range r.list {
		if e, ok := x.Event.(E); ok && (name == "" || x.Object.Name == name) {
			out = append(out, e)
		}
	}
	return out
}

// rules lists the decisions on an object so far, for example "D-13 create".
func (r *recorder) rules(name string) []string {
	var out []string
	for _, d := range events[trace.Decision](r, name) {
		out = append(out, d.Rule+" "+d.Action)
	}
	return out
}

// ends are how the passes over an object ended so far.
func (r *recorder) ends(name string) []trace.End { return events[trace.End](r, name) }

// drift is every difference that was traced.
func (r *recorder) drift() []trace.Drift { return events[trace.Drift](r, "") }

// newOperatorTest starts an operator of things, quick to retry and without routine observations unless
// the options ask for them.
func newOperatorTest(t *testing.T, d driver[*thing.Thing], change ...func(*options)) *operatorTest {
	t.Helper()
	w := prepareOperatorTest(t, d, change...)
	w.start()
	return w
}

func prepareOperatorTest(t *testing.T, d driver[*thing.Thing], change ...func(*options)) *operatorTest {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, thing.CRDs)
	counted, requests := testenv.Requests(cfg)
	w := &operatorTest{
		t: t, cloud: newCloud(t), admin: testenv.Client(t, cfg, thing.AddToScheme),
		cfg: counted, requests: requests, namespace: testenv.Namespace(t, cfg), driver: d, trace: &recorder{},
	}
	w.options = options{DriftInterval: -1, CreateGrace: -1, Limits: external.Limits{Adoption: "always"}}
	w.options.Connect = func(context.Context) (*cloudClient, error) {
		return &cloudClient{base: w.cloud.URL, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, nil
	}
	w.options.Loop = loop.Options[*thing.Thing]{
		Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond},
		Trace: w.trace,
	}
	for _, f := range change {
		f(&w.options)
	}
	return w
}

// drifting observes every d.
func drifting(d time.Duration) func(*options) { return func(o *options) { o.DriftInterval = d } }

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, thing.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start runs the operator until the test ends or w.stop is called. Starting it again after
// that is a new process as far as external can tell.
func (w *operatorTest) start() {
	w.t.Helper()
	mgr, err := ctrl.NewManager(w.cfg, ctrl.Options{
		Scheme: scheme(w.t), Logger: logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	controller := external.New(w.driver, w.options)
	controller.Govern(w.terms)
	if err := controller.SetupWithManager(mgr); err != nil {
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

// annotated gives a new object an annotation.
func annotated(key, value string) func(*thing.Thing) {
	return func(t *thing.Thing) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) }
}

// create makes the object "a" and returns it as the server has it.
func (w *operatorTest) create(change ...func(*thing.Thing)) *thing.Thing {
	w.t.Helper()
	return w.createAs("a", change...)
}

func (w *operatorTest) createAs(name string, change ...func(*thing.Thing)) *thing.Thing {
	w.t.Helper()
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: thing.Spec{Size: 1}}
	for _, f := range change {
		f(obj)
	}
	if err := w.admin.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func (w *operatorTest) get(name string) *thing.Thing {
	w.t.Helper()
	obj := &thing.Thing{}
	if err := w.admin.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// patch merges a JSON body into the object "a", as a user would.
func (w *operatorTest) patch(body string) *thing.Thing {
	w.t.Helper()
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
	if err := w.admin.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func (w *operatorTest) resize(size int) {
	w.t.Helper()
	w.patch(fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

// annotate sets an annotation of the object "a".
func (w *operatorTest) annotate(key, value string) {
	w.t.Helper()
	w.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
}

// poke asks for a pass now.
func (w *operatorTest) poke(token string) { w.t.Helper(); w.annotate("trimtab.dev/reconcile", token) }

func (w *operatorTest) delete() {
	w.t.Helper()
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}
	if err := w.admin.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// await waits until the object "a" is as ok says.
func (w *operatorTest) await(why string, ok func(*thing.Thing) bool) *thing.Thing {
	w.t.Helper()
	return w.awaitAs("a", why, ok)
}

func (w *operatorTest) awaitAs(name, why string, ok func(*thing.Thing) bool) *thing.Thing {
	w.t.Helper()
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	return testenv.Wait(w.t, w.admin, obj, why, ok)
}

func (w *operatorTest) gone() {
	w.t.Helper()
	testenv.Gone(w.t, w.admin, &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}, "the object to go")
}

// ready waits for the object "a" to be Ready for its present generation.
func (w *operatorTest) ready() *thing.Thing {
	w.t.Helper()
	return w.await("Ready=True for the present generation", func(o *thing.Thing) bool {
		return is(o, "Ready", "True") && condition(o, "Ready").ObservedGeneration == o.Generation && o.Status.State == "Succeeded"
	})
}

// awaitCalls waits until the cloud has had n calls of a method.
func (w *operatorTest) awaitCalls(method string, n int) {
	w.t.Helper()
	deadline := time.After(poll.Patience)
	for w.cloud.count(method) < n {
		select {
		case <-w.cloud.called:
		case <-deadline:
			w.t.Fatalf("%d calls of %s, want %d; the cloud had %v", w.cloud.count(method), method, n, w.cloud.calls(true))
		}
	}
}

// quiet wants silence for d: no call of the cloud, no write to Kubernetes.
func (w *operatorTest) quiet(d time.Duration) {
	w.t.Helper()
	calls, writes := len(w.cloud.calls(true)), len(w.writes("a"))
	<-time.After(d) // a silence can only be listened to
	if now := w.cloud.calls(true); len(now) != calls {
		w.t.Errorf("calls in a time of silence: %v", now[calls:])
	}
	if now := w.writes("a"); len(now) != writes {
		w.t.Errorf("writes in a time of silence: %v", now[writes:])
	}
}

// writes lists the operator's writes to an object as "verb subresource".
func (w *operatorTest) writes(name string) []string {
	var out []string
	for _, r := range w.requests.Writes("things", w.namespace, name) {
		out = append(out, strings.TrimSpace(r.Verb+" "+r.Subresource))
	}
	return out
}

// events lists the reasons of Kubernetes events about objects of the namespace.
func (w *operatorTest) events() []string {
	w.t.Helper()
	var out []string
	for _, r := range w.requests.Select(func(r testenv.Request) bool {
		return r.Resource == "events" && r.Verb == "create" && r.Namespace == w.namespace
	}) {
		out = append(out, string(r.Body))
	}
	return out
}

// awaitEvent waits for an event that holds text.
func (w *operatorTest) awaitEvent(text string) {
	w.t.Helper()
	if !w.until(func() bool {
		return slices.ContainsFunc(w.events(), func(e string) bool { return strings.Contains(e, text) })
	}) {
		w.t.Fatalf("no event with %q; there were %v", text, w.events())
	}
}

// until waits for what cannot be watched, and reports whether it came.
func (w *operatorTest) until(ok func() bool) bool { return poll.Until(ok) }

func condition(o *thing.Thing, t string) metav1.Condition {
	if c := apimeta.FindStatusCondition(o.Status.Conditions, t); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func is(o *thing.Thing, t, status string) bool { return string(condition(o, t).Status) == status }

// name is the default name of the thing behind an object.
func name(o *thing.Thing) string { return "thing-" + string(o.UID) }

type traceDrift = trace.Drift

func mergePatch(body []byte) client.Patch { return client.RawPatch(types.MergePatchType, body) }

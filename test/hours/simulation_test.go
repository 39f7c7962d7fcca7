package hours

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

type options = external.Options[*v1.Folder, *vendor]

// simulation is a simulated cluster, a vendor, and an operator between them, in a bubble of
// simulated time.
type simulation struct {
	t      *testing.T
	vendor *vendor
	client client.Client
	name   string // of the controller, in metrics
	// drives manages folders; nil is driver.
	drives external.Driver[*v1.Folder, *vendor, bool]
	// more adds controllers of Things to the operator.
	more func(manager.Manager) error
	// uncached: the operator reads objects from the API server.
	uncached bool

	mu     sync.Mutex
	traced []trace.Record
	logged []string // lines at the level of errors
	// breaks are requests of the operator that fail with 500; nil are none. writes are its writes, as METHOD path.
	breaks func(*http.Request) bool
	writes []string
	// relists: until then, no watch may go on where it was.
	relists time.Time
	// hears is closed when watches hear again; nil if they do.
	hears chan struct{}
}

// trip breaks requests, and notes writes.
func (w *simulation) trip(next http.RoundTripper) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		broken := w.breaks != nil && w.breaks(r)
		expired := r.URL.Query().Get("watch") != "" && time.Now().Before(w.relists)
		if r.Method != http.MethodGet {
			w.writes = append(w.writes, r.Method+" "+r.URL.Path)
		}
		w.mu.Unlock()
		if expired {
			return refusal(r, http.StatusGone, "Expired"), nil
		}
		if !broken {
			response, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Get("watch") != "" {
				response.Body = &ear{ReadCloser: response.Body, of: w}
			}
			return response, err
		}
		return refusal(r, http.StatusInternalServerError, "InternalError"), nil
	})
}

// refusal is an answer of an API server that refuses a request.
func refusal(r *http.Request, code int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"etcd is away"}`, reason, code)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// uncached makes a client that reads single objects from the API server.
func uncached(cfg *rest.Config, o client.Options) (client.Client, error) {
	cached, err := client.New(cfg, o)
	if err != nil {
		return nil, err
	}
	o.Cache = nil
	live, err := client.New(cfg, o)
	return liveGets{cached, live}, err
}

type liveGets struct {
	client.Client

	live client.Client
}

func (c liveGets) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return c.live.Get(ctx, key, obj)
}

// ear is a watch that hears nothing while the operator is deaf, and ends with that.
type ear struct {
	io.ReadCloser

	of *simulation
}

func (e *ear) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.of.mu.Lock()
	hears := e.of.hears
	e.of.mu.Unlock()
	if hears == nil {
		return n, err
	}
	<-hears
	return 0, io.EOF
}

// deaf drops all events of watches, or ends that.
func (w *simulation) deaf(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if is {
		w.hears = make(chan struct{})
		return
	}
	close(w.hears)
	w.hears, w.relists = nil, time.Now().Add(100*time.Millisecond)
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// breaking lets requests of the operator fail; nil ends that.
func (w *simulation) breaking(f func(*http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks, w.writes = f, nil
}

// wrote are the operator's writes since breaking.
func (w *simulation) wrote() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// inHours runs a test in a bubble of simulated time.
func inHours(t *testing.T, change func(*options), f func(*simulation)) {
	t.Helper()
	inHoursOf(t, change, f, func(*simulation) {})
}

// inHoursOf is inHours, with another operator.
func inHoursOf(t *testing.T, change func(*options), f, operator func(*simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := kubesim.New(t, kubesim.Options{CRDs: definitions(t, os.DirFS("testdata/folder/crds"), thing.CRDs)})
		scheme := runtime.NewScheme()
		must(t, v1.AddToScheme(scheme))
		must(t, eventsv1.AddToScheme(scheme))
		must(t, thing.AddToScheme(scheme))
		k, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
		must(t, err)
		w := &simulation{t: t, client: k, vendor: &vendor{items: map[string]*item{}}, name: controllerName(t.Name())}
		operator(w)
		w.start(cluster, scheme, change)
		f(w)
	})
}

// controllerName is a name in metrics that no other test has.
func controllerName(test string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(test)) // a hash never fails
	return fmt.Sprintf("hours-%x", h.Sum64())
}

// start runs the operator until the test ends.
func (w *simulation) start(cluster *kubesim.Cluster, scheme *runtime.Scheme, change func(*options)) {
	cfg := cluster.Config()
	cfg.Wrap(w.trip)
	var newClient client.NewClientFunc
	if w.uncached {
		newClient = uncached
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		NewClient: newClient,
		Scheme:    scheme, Logger: funcr.New(w.log, funcr.Options{}),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(time.Duration),
	})
	must(w.t, err)
	o := options{Connect: func(context.Context) (*vendor, error) { return w.vendor, nil }}
	o.Loop.Name, o.Loop.Trace = w.name, w
	if change != nil {
		change(&o)
	}
	if w.drives == nil {
		w.drives = driver{}
	}
	must(w.t, external.New(w.drives, o).SetupWithManager(cold{mgr}))
	if w.more != nil {
		must(w.t, w.more(cold{mgr}))
	}
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
	w.pass(time.Second)
}

// cold is a manager whose controllers do not warm up: that waits for caches with a lock held
// that the start wants, and a wait for a lock stops the bubble's clock.
type cold struct{ manager.Manager }

func (m cold) Add(r manager.Runnable) error {
	if v := reflect.ValueOf(r); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if warm := v.Elem().FieldByName("EnableWarmup"); warm.IsValid() && warm.CanSet() {
			warm.Set(reflect.ValueOf(new(false)))
		}
	}
	return m.Manager.Add(r)
}

// log keeps what is logged as an error; funcr marks other lines with their level.
func (w *simulation) log(_, args string) {
	if strings.Contains(args, `"level"=`) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logged = append(w.logged, args)
}

// Record implements trace.Sink.
func (w *simulation) Record(r trace.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traced = append(w.traced, r)
}

// records are the events of one type that were traced.
func records[E trace.Event](w *simulation) []E {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []E
	for _, r := range w.traced {
		if e, is := r.Event.(E); is {
			out = append(out, e)
		}
	}
	return out
}

// pass lets simulated time pass, and whatever is due in it happen.
func (w *simulation) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// folder is the object of that name, as far as that is known without a look.
func (w *simulation) folder(name string) *v1.Folder {
	return &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func (w *simulation) create(name, needs string) {
	w.t.Helper()
	f := w.folder(name)
	if needs != "" {
		f.Annotations = map[string]string{annotationNeeds: needs}
	}
	must(w.t, w.client.Create(w.t.Context(), f))
}

func (w *simulation) get(name string) *v1.Folder {
	w.t.Helper()
	f := &v1.Folder{}
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, f))
	return f
}

func (w *simulation) setReadOnly(name string) {
	w.t.Helper()
	f := w.get(name)
	f.Spec.ReadOnly = true
	must(w.t, w.client.Update(w.t.Context(), f))
}

// events are the Kubernetes events about folders.
func (w *simulation) events() []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	must(w.t, w.client.List(w.t.Context(), &list))
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind != "Folder" })
}

// errors is how many passes controller-runtime counted as failed.
func (w *simulation) errors() float64 {
	w.t.Helper()
	families, err := metrics.Registry.Gather()
	must(w.t, err)
	n, found := 0.0, false
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == w.name {
					n, found = n+m.GetCounter().GetValue(), true
				}
			}
		}
	}
	if !found {
		w.t.Fatalf("there is no counter of errors for controller %s", w.name)
	}
	return n
}

func condition(f *v1.Folder, t string) metav1.Condition {
	if c := meta.FindStatusCondition(f.Status.Conditions, t); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func is(f *v1.Folder, t string) bool { return meta.IsStatusConditionTrue(f.Status.Conditions, t) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

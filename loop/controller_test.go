package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// call is one call of the author's code.
type call struct {
	Method     string
	Name       string
	Attempt    int
	Last       bool
	Generation int64
	Version    string
	Finalizers []string
	At, Ended  time.Time
	Again      time.Duration // until the next pass, as its own pass ended
}

// author does what a test says and notes each call.
type author struct {
	mu    sync.Mutex
	calls []call
	open  map[string][]call // of passes under way, by object
	begun atomic.Int64
	over  atomic.Int64 // of those begun
	ended chan call    // of passes that are over, their writes included
	// reconcile is what Reconcile does; nil means Done.
	reconcile func(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome
}

func newAuthor(f func(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome) *author {
	return &author{open: map[string][]call{}, ended: make(chan call, 1000), reconcile: f}
}

func (a *author) note(method string, r *loop.Run[*probe.Probe]) call {
	c := call{
		Method: method, Name: r.Obj.Name, Attempt: r.Retry().Attempt, Last: r.Retry().Last,
		Generation: r.Obj.Generation, Version: r.Obj.ResourceVersion,
		Finalizers: append([]string(nil), r.Obj.Finalizers...), At: time.Now(),
	}
	a.begun.Add(1)
	return c
}

func (a *author) done(c call) {
	c.Ended = time.Now()
	a.mu.Lock()
	a.calls = append(a.calls, c)
	a.open[c.Name] = append(a.open[c.Name], c)
	a.mu.Unlock()
}

// Record makes the author a trace.Sink: a call is reported once its pass is over.
func (a *author) Record(r trace.Record) {
	end, over := r.Event.(trace.End)
	if !over {
		return
	}
	a.mu.Lock()
	calls := a.open[r.Object.Name]
	delete(a.open, r.Object.Name)
	a.mu.Unlock()
	for _, c := range calls {
		c.Again = end.Again
		a.ended <- c
		a.over.Add(1)
	}
}

func (a *author) sink() trace.Sink { return a }

func (a *author) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	c := a.note("reconcile", r)
	defer a.done(c)
	if a.reconcile == nil {
		return loop.Done()
	}
	return a.reconcile(ctx, r)
}

// count returns how many calls of method have ended.
func (a *author) count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, c := range a.calls {
		if c.Method == method {
			n++
		}
	}
	return n
}

// cleaner is an author with something to undo.
type cleaner struct {
	*author
	cleanup func(ctx context.Context, r *loop.Run[*probe.Probe]) loop.CleanupOutcome
}

func (c cleaner) Cleanup(ctx context.Context, r *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	n := c.note("cleanup", r)
	defer c.done(n)
	if c.cleanup == nil {
		return loop.CleanedUp()
	}
	return c.cleanup(ctx, r)
}

// handler is an author that looks at failures.
type handler struct {
	cleaner
	onError func(ctx context.Context, r *loop.Run[*probe.Probe], err error) loop.ErrorOutcome
}

func (h handler) OnError(ctx context.Context, r *loop.Run[*probe.Probe], err error) loop.ErrorOutcome {
	n := h.note("onError", r)
	defer h.done(n)
	return h.onError(ctx, r, err)
}

// controllerTest is a namespace of a real API server with one controller of Probes in it.
type controllerTest struct {
	t         *testing.T
	admin     client.WithWatch
	cfg       *rest.Config
	requests  *testenv.Log
	namespace string
	stop      func()
	log       logr.Logger
	// lease is the name of the lease by which processes elect a leader; empty means that there is no election.
	lease string
	// manager changes the manager of the controllers that are started; nil leaves it as it is.
	manager func(manager.Manager) manager.Manager
}

// newControllerTest starts a controller of r, whose requests pass through wrap.
func newControllerTest(t *testing.T, r loop.Reconciler[*probe.Probe], o loop.Options[*probe.Probe], wrap ...transport.WrapperFunc) *controllerTest {
	t.Helper()
	w := newNamespaceTest(t, wrap...)
	w.start(r, o)
	return w
}

// newNamespaceTest makes a namespace in which no controller runs yet.
func newNamespaceTest(t *testing.T, wrap ...transport.WrapperFunc) *controllerTest {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	admin := testenv.Client(t, cfg, probe.AddToScheme, clientgoscheme.AddToScheme)
	counted, requests := testenv.Requests(cfg)
	for _, f := range wrap {
		counted.Wrap(f)
	}
	return &controllerTest{t: t, admin: admin, cfg: counted, requests: requests, namespace: testenv.Namespace(t, cfg), log: logr.Discard()}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(probe.AddToScheme(s), clientgoscheme.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs a manager with one controller of r until the test ends or w.stop is called.
func (w *controllerTest) start(r loop.Reconciler[*probe.Probe], o loop.Options[*probe.Probe]) {
	w.t.Helper()
	if a, ok := r.(interface{ sink() trace.Sink }); ok {
		o.Trace = a.sink()
	}
	w.manage(loop.New(r, o).SetupWithManager)
}

// manage runs a manager with a controller until the test ends or w.stop is called.
func (w *controllerTest) manage(setup func(ctrl.Manager) error, change ...func(*ctrl.Options)) {
	w.t.Helper()
	o := ctrl.Options{
		LeaderElection: w.lease != "", LeaderElectionID: w.lease, LeaderElectionNamespace: w.namespace, RetryPeriod: new(100 * time.Millisecond),
		Scheme: scheme(w.t), Logger: withoutBugs(w.t, w.log),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	for _, f := range change {
		f(&o)
	}
	mgr, err := ctrl.NewManager(w.cfg, o)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.manager != nil {
		mgr = w.manager(mgr)
	}
	if err := setup(mgr); err != nil {
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

// bugs is a sink that has a test fail when the loop tells of a bug of its own: passes are repeated after one, and may come to
// what a test waits for all the same.
type bugs struct {
	logr.LogSink
	t *testing.T
}

func withoutBugs(t *testing.T, l logr.Logger) logr.Logger {
	t.Helper()
	sink := l.GetSink()
	if sink == nil {
		sink = funcr.New(func(string, string) {}, funcr.Options{}).GetSink()
	}
	return logr.New(bugs{sink, t})
}

func (b bugs) Error(err error, msg string, pairs ...any) {
	if strings.Contains(msg, "a bug in trimtab") {
		b.t.Errorf("%s: %v %v", msg, err, pairs)
	}
	b.LogSink.Error(err, msg, pairs...)
}

func (b bugs) WithValues(pairs ...any) logr.LogSink { return bugs{b.LogSink.WithValues(pairs...), b.t} }
func (b bugs) WithName(name string) logr.LogSink    { return bugs{b.LogSink.WithName(name), b.t} }

// create makes a Probe named name.
func (w *controllerTest) create(name string, change ...func(*probe.Probe)) {
	w.t.Helper()
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	for _, f := range change {
		f(p)
	}
	if err := w.admin.Create(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// get reads a Probe live.
func (w *controllerTest) get(name string) *probe.Probe {
	w.t.Helper()
	p := &probe.Probe{}
	if err := w.admin.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// patch merges a JSON body into a Probe as a user would.
func (w *controllerTest) patch(name, body string) *probe.Probe {
	w.t.Helper()
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.admin.Patch(w.t.Context(), p, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// resize changes the spec of the Probe a.
func (w *controllerTest) resize(size int) *probe.Probe {
	w.t.Helper()
	return w.patch("a", fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

// delete asks for the deletion of the Probe a.
func (w *controllerTest) delete() {
	w.t.Helper()
	if err := w.admin.Delete(w.t.Context(), &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}); err != nil {
		w.t.Fatal(err)
	}
}

// await waits until the Probe is as ok says.
func (w *controllerTest) await(name, why string, ok func(*probe.Probe) bool) *probe.Probe {
	w.t.Helper()
	return testenv.Wait(w.t, w.admin, w.get(name), why, ok)
}

// next waits for the end of the next call of the author.
func (w *controllerTest) next(a *author) call {
	w.t.Helper()
	return receive(w.t, a.ended)
}

func receive(t *testing.T, from <-chan call) call {
	t.Helper()
	select {
	case c := <-from:
		return c
	case <-time.After(poll.Patience):
		t.Fatal("the author was not called within 2 minutes")
		return call{}
	}
}

// prompt asserts that what try measures takes no longer than limit. Whatever else the machine does only adds to it, so the
// best of ten counts.
func prompt(t *testing.T, what string, limit time.Duration, try func() time.Duration) {
	t.Helper()
	best := try()
	for n := 1; n < 10 && best > limit; n++ {
		best = min(best, try())
	}
	if best > limit {
		t.Errorf("%s takes %s, want at most %s", what, best, limit)
	}
}

// spaced asserts that each call was appointed at the end of the one before, by delay or what jitter makes of it, and came no
// earlier. How much later depends on the machine.
func spaced(t *testing.T, delay time.Duration, calls ...call) {
	t.Helper()
	for i, c := range calls[1:] {
		last, least, most := calls[i], delay*5/6, delay*7/6
		if gap := c.At.Sub(last.Ended); last.Again < least || last.Again > most || gap < last.Again {
			t.Errorf("call %d was appointed after %s, and came after %s; want about %s", i+2, last.Again, gap, delay)
		}
	}
}

// quiet asserts that for d nobody calls the author and nothing is written. After a change that must cause neither,
// that is too late: see listen.
func (w *controllerTest) quiet(a *author, d time.Duration) {
	w.t.Helper()
	w.listen(a)(d)
}

// listen returns a function that asserts that from now on, and for d after it is called, nobody calls the author and
// nothing is written. What a change causes may be over before the change is answered, so a test listens first.
func (w *controllerTest) listen(a *author) (quiet func(d time.Duration)) {
	before, begun := len(w.probeWrites()), a.begun.Load()
	return func(d time.Duration) {
		w.t.Helper()
		<-time.After(d) // a silence can only be listened to
		if now := a.begun.Load(); now != begun {
			w.t.Errorf("the author was called %d times in a time of silence", now-begun)
		}
		if after := w.probeWrites(); len(after) != before {
			w.t.Errorf("written in a time of silence: %v", after[before:])
		}
	}
}

// writes lists the writes to the Probe a as "verb subresource", in order.
func (w *controllerTest) writes() []string {
	var out []string
	for _, r := range w.requests.Writes("probes", w.namespace, "a") {
		out = append(out, strings.TrimSpace(r.Verb+" "+r.Subresource))
	}
	return out
}

// probeWrites lists the writes to all Probes.
func (w *controllerTest) probeWrites() []testenv.Request {
	return w.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource == "probes" })
}

func ready(p *probe.Probe) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" && c.Status == metav1.ConditionTrue {
			return true
		}
	}
	return false
}

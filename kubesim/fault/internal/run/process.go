package run

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Process is one life of the operator: a manager with its own client, cache, queues and
// memory. It ends with a crash; from then on each of its calls is refused before it
// has an effect, also those from deferred functions and goroutines.
type Process struct {
	number int // its place in the history
	queue  *turn.Queue
	calls  *calls
	events *events
	points *points
	record *history.Recorder
	doors  *doors

	began time.Time
	// ownCaches is set if the operator made caches besides the manager's.
	ownCaches atomic.Bool

	gate   store.Gate
	cancel context.CancelFunc
	// newContext returns the context of a call of one of its webhooks.
	newContext func() (context.Context, context.CancelFunc)
	done       chan struct{} // closed when the manager has returned
	ended      chan struct{} // closed when the process was told to end

	passes running
	frost  frost

	dead    atomic.Bool
	crashed atomic.Bool // in the middle of a call
	err     error       // with which the manager returned
}

// start starts a process.
func (p *Process) start(s *Scenario) error {
	p.frost.over = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done, p.ended = cancel, make(chan struct{}), make(chan struct{})
	p.newContext = func() (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, webhookKey{}, true))
	}
	p.began, p.gate.Wake = time.Now(), p.queue.Notify
	p.events.caching.Store(false)
	p.number = p.record.BeginProcess()
	p.calls.past.begin(p)
	mgr, err := ctrl.NewManager(p.config(), p.options(s.Manager))
	if err != nil {
		cancel()
		return fmt.Errorf("make a manager: %w", err)
	}
	go func() {
		defer close(p.done)
		defer p.queue.Notify()
		// What sets an operator up may call the API too, so it waits for its turn like all else.
		if err := s.SetUp(watched{mgr, p}, p); err != nil {
			p.err = fmt.Errorf("set up the operator: %w", err)
			return
		}
		p.err = mgr.Start(ctx)
	}()
	return nil
}

func (p *Process) config() *rest.Config {
	return &rest.Config{Host: "http://kubesim", QPS: -1, Transport: p.calls.transport(p), UserAgent: "operator"}
}

// options are the author's, with what a test decides.
func (p *Process) options(o manager.Options) manager.Options {
	box := p.calls.box
	o.Scheme = box.Scheme
	o.Logger = logr.Discard()
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.WebhookServer = &webhooks{process: p, mux: http.NewServeMux()}
	o.HealthProbeBindAddress, o.PprofBindAddress = "0", "0"
	o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return box.Mapper, nil }
	o.GracefulShutdownTimeout = new(time.Duration(0))
	o.Controller.SkipNameValidation = new(true)
	if o.Client.Cache != nil { // controller-runtime puts the process's own cache into it
		o.Client.Cache = new(*o.Client.Cache)
	}
	o.Cache.ByObject = maps.Clone(o.Cache.ByObject)
	o.Cache.DefaultNamespaces = maps.Clone(o.Cache.DefaultNamespaces)
	if o.LeaderElection && o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = metav1.NamespaceDefault
	}
	caching := o.NewCache
	if caching == nil {
		caching = cache.New
	}
	o.NewCache = func(config *rest.Config, co cache.Options) (cache.Cache, error) {
		c, err := caching(config, co)
		return mortalCache{c, p}, err
	}
	made := o.NewClient
	if made == nil {
		made = client.New
	}
	o.NewClient = func(config *rest.Config, co client.Options) (client.Client, error) {
		c, err := made(config, co)
		return readingClient{c, p}, err
	}
	return o
}

// mortalCache is the cache of a process that may be killed while it fills. controller-runtime's manager, told to end
// before that, spins until it is full, and a process that was killed does nothing.
type mortalCache struct {
	cache.Cache
	process *Process
}

// WaitForCacheSync also returns true when the process is dead.
func (c mortalCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.process.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return c.Cache.WaitForCacheSync(ctx) || !c.process.Alive()
}

// Number is its place in the history.
func (p *Process) Number() int { return p.number }

// Alive reports whether the process still may do something.
func (p *Process) Alive() bool { return !p.dead.Load() }

// kill ends the process.
func (p *Process) kill() {
	if !p.dead.Swap(true) {
		close(p.ended)
	}
	p.cancel()
}

// crash ends its life in the middle of a call.
func (p *Process) crash() {
	p.crashed.Store(true)
	p.kill()
	p.queue.Notify()
}

// collapse ends a process in which nobody recovered a panic of the author's code.
func (p *Process) collapse(at string) {
	p.record.Process(p.number, func(h *history.Process) { h.Collapsed = at })
	p.crash()
}

// hasEnded reports whether its manager has returned.
func (p *Process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// awaitCall waits until it is the turn of a call. What a webhook does is part of the request in whose path it is
// called. The detail tells apart the calls that one pass makes at the same time.
func (p *Process) awaitCall(ctx context.Context, pass int, what, detail string) error {
	if inWebhook(ctx) {
		return p.GoOn(what)
	}
	return p.queue.Wait(ctx, &turn.Turn{Process: p, For: turn.Call, What: what, Detail: detail, Pass: pass, Cache: pass == history.Nobody})
}

// awaitRead waits until it is the turn of a read from the cache.
func (p *Process) awaitRead(ctx context.Context, what, detail string) error {
	if inWebhook(ctx) {
		return p.GoOn(what)
	}
	return p.queue.Wait(ctx, &turn.Turn{Process: p, For: turn.Read, What: what, Detail: detail, Pass: p.passes.passOf(ctx)})
}

// GoOn notes what the process wants to do although it is dead, and fails then.
func (p *Process) GoOn(what string) error {
	if p.Alive() {
		return nil
	}
	p.record.Process(p.number, func(h *history.Process) { h.Fenced = append(h.Fenced, what) })
	return disturb.ErrDead
}

// Author is a point in code that the author of the operator gave to a framework.
func (p *Process) Author(what string) {
	if p.Alive() {
		p.points.visit(p, what)
	}
}

// External makes a call to the external API. lost is set if the caller does not get the answer; do is
// given what the call sees.
func (p *Process) External(ctx context.Context, what string, write bool, do func(*sandbox.External) (code int, err error)) (lost bool, err error) {
	return p.calls.external(ctx, p, what, write, do)
}

// readingClient parks the process before each read from its cache, which is where what it
// sees is decided.
type readingClient struct {
	client.Client
	process *Process
}

// Get waits for its turn.
func (c readingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.process.awaitRead(ctx, fmt.Sprintf("get %T %s", obj, key), ""); err != nil {
		return err
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// List waits for its turn.
func (c readingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.process.awaitRead(ctx, fmt.Sprintf("list %T", list), selected(opts)); err != nil {
		return err
	}
	return c.Client.List(ctx, list, opts...)
}

// selected tells lists of one kind apart.
func selected(opts []client.ListOption) string {
	var o client.ListOptions
	o.ApplyOptions(opts)
	var labels, fields string
	if o.LabelSelector != nil {
		labels = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		fields = o.FieldSelector.String()
	}
	return turn.Detail(o.Namespace, labels, fields)
}

// watched is the manager that an operator gets: it sees each controller that is added, so an
// unmodified SetupWithManager is enough.
type watched struct {
	manager.Manager
	process *Process
}

// Add wraps the reconciler of a controller. Its type is internal to controller-runtime, but
// the field is exported. A warm-up is left out: it waits for caches with a lock held that the
// start wants, and so would stop the bubble's clock.
func (m watched) Add(r manager.Runnable) error {
	if _, ok := r.(cache.Cache); ok {
		m.process.ownCaches.Store(true)
	}
	if v := controllerIn(reflect.ValueOf(r)); v.IsValid() {
		m.wrap(v)
		if warm := v.FieldByName("EnableWarmup"); warm.IsValid() && warm.CanSet() && warm.Type() == reflect.TypeFor[*bool]() {
			warm.Set(reflect.ValueOf(new(false)))
		}
	}
	return m.Manager.Add(r)
}

// wrap lets the passes of a controller begin when it is their turn. What is no controller stays.
func (m watched) wrap(v reflect.Value) {
	do, name, most := v.FieldByName("Do"), v.FieldByName("Name"), v.FieldByName("MaxConcurrentReconciles")
	if !do.IsValid() || !do.CanSet() || !name.IsValid() || name.Kind() != reflect.String {
		return
	}
	inner, ok := reflect.TypeAssert[reconcile.Reconciler](do)
	if !ok {
		m.process.points.noteUnseen(name.String())
		return
	}
	s := &turn.Slots{Limit: 1}
	if most.IsValid() && most.CanSet() && most.CanInt() {
		s.Limit = max(1, int(most.Int()))
		most.SetInt(int64(max(workers, s.Limit)))
	}
	if made := v.FieldByName("NewQueue"); made.IsValid() && made.CanSet() && made.Type() == reflect.TypeFor[newQueue]() {
		made.Set(reflect.ValueOf(onceAtATime(made.Interface().(newQueue), m.process.queue.Now, m.process.awaitCaches)))
	}
	do.Set(reflect.ValueOf(passes{inner, m.process, name.String(), s}))
}

// workers is how many objects of one controller can be due at a time in a known order.
const workers = 16

// ownCachesTake is more than controller-runtime takes to fill a cache and to look, each 100 ms, whether it is full.
const ownCachesTake = time.Second

// awaitCaches waits until all caches of the process are full. Which of those that the operator made by itself is
// found full first is a matter of chance, and with it which events a controller's first pass has seen.
func (p *Process) awaitCaches() {
	if p.ownCaches.Load() {
		time.Sleep(time.Until(p.began.Add(ownCachesTake))) //nolint:forbidigo // of the simulated clock
	}
}

// GetLogger keeps controllers silent.
func (m watched) GetLogger() logr.Logger { return logr.Discard() }

// passes notes each pass of a controller, and lets it begin when it is its turn.
type passes struct {
	inner      reconcile.Reconciler
	process    *Process
	controller string
	slots      *turn.Slots
}

// Reconcile is one pass.
func (d passes) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	p := d.process
	object := req.Name
	if req.Namespace != "" {
		object = req.String()
	}
	t := &turn.Turn{Process: p, For: turn.Pass, What: d.controller + " " + object, Slots: d.slots}
	if err := p.queue.Wait(ctx, t); err != nil {
		return reconcile.Result{}, err
	}
	index := p.record.BeginPass(history.Pass{
		Process: p.number, Controller: d.controller, Object: object, Stale: p.events.isStale(len(p.record.Run.Passes)),
	})
	p.events.beginPass(index)
	d.slots.Running++
	leave := p.passes.begin(index)
	defer func() {
		panicked := recover()
		leave()
		if panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
		if _, wanted := panicked.(*injected); panicked != nil && !wanted {
			stack := fmt.Sprintf("%v\n%s", panicked, debug.Stack())
			p.record.Process(p.number, func(h *history.Process) { h.Panics = append(h.Panics, stack) })
		}
		p.record.EndPass(index, err)
		p.events.endPass(index)
		d.slots.Running--
		p.endFrozen(index)
	}()
	return d.inner.Reconcile(context.WithValue(context.WithValue(ctx, processKey{}, p), passKey{}, index), req)
}

package fault

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// process is one life of the operator: a manager with its own client, cache, queues and
// memory. Its epoch ends with a crash; from then on each of its calls is refused before it
// has an effect, also those from deferred functions and goroutines.
type process struct {
	play   *play
	number int // its place in the history
	gate   store.Gate
	cancel context.CancelFunc
	done   chan struct{} // closed when the manager has returned
	ended  chan struct{} // closed when the process was told to end

	mu   sync.Mutex
	dead bool
	err  error // with which the manager returned
}

// start starts the next process.
func (p *play) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	pr := &process{play: p, number: len(p.run.Processes), cancel: cancel, done: make(chan struct{}), ended: make(chan struct{})}
	pr.gate.Wake = p.notify
	p.setCaching(false)
	p.run.Processes = append(p.run.Processes, history.Process{Started: time.Now(), FirstCall: len(p.run.Calls)})
	mgr, err := ctrl.NewManager(pr.config(), pr.options())
	if err != nil {
		cancel()
		return fmt.Errorf("make a manager: %w", err)
	}
	p.processes = append(p.processes, pr)
	go func() {
		defer close(pr.done)
		defer p.notify()
		// What sets an operator up may call the API too, so it waits for its turn like all else.
		if err := p.scenario.Operator.SetUp(watched{mgr, pr}, &Env{pr}); err != nil {
			pr.err = fmt.Errorf("set up the operator: %w", err)
			return
		}
		pr.err = mgr.Start(ctx)
	}()
	return nil
}

func (pr *process) config() *rest.Config {
	return &rest.Config{Host: "http://kubesim", QPS: -1, Transport: pr.play.operatorTransport(pr), UserAgent: "operator"}
}

// options are the author's, with what a test decides.
func (pr *process) options() manager.Options {
	o := pr.play.scenario.Operator.Manager
	o.Scheme = pr.play.scheme
	o.Logger = pr.play.explorer.log
	o.Metrics = metricsserver.Options{BindAddress: "0"}
	o.HealthProbeBindAddress, o.PprofBindAddress = "0", "0"
	o.MapperProvider = pr.play.mapper
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
	made := o.NewClient
	if made == nil {
		made = client.New
	}
	o.NewClient = func(config *rest.Config, co client.Options) (client.Client, error) {
		c, err := made(config, co)
		return readingClient{c, pr}, err
	}
	return o
}

// alive reports whether the process still may do something.
func (pr *process) alive() bool {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return !pr.dead
}

// kill ends the epoch.
func (pr *process) kill() {
	pr.mu.Lock()
	if !pr.dead {
		close(pr.ended)
	}
	pr.dead = true
	pr.mu.Unlock()
	pr.cancel()
}

// refuse notes a call that came after death.
func (pr *process) refuse(what string) error {
	pr.play.mu.Lock()
	defer pr.play.mu.Unlock()
	h := &pr.play.run.Processes[pr.number]
	h.Fenced = append(h.Fenced, what)
	return ErrDead
}

// readingClient parks the process before each read from its cache, which is where what it
// sees is decided.
type readingClient struct {
	client.Client
	process *process
}

func (c readingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.process.awaitRead(ctx, fmt.Sprintf("get %T %s", obj, key)); err != nil {
		return err
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c readingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.process.awaitRead(ctx, fmt.Sprintf("list %T", list)); err != nil {
		return err
	}
	return c.Client.List(ctx, list, opts...)
}

func (pr *process) awaitRead(ctx context.Context, what string) error {
	return pr.play.park(ctx, pr, parkedRead, what)
}

// watched is the manager that an operator gets: it sees each controller that is added, so an
// unmodified SetupWithManager is enough.
type watched struct {
	manager.Manager
	process *process
}

// Add wraps the reconciler of a controller. Its type is internal to controller-runtime, but
// the field is exported. A warm-up is left out: it waits for caches with a lock held that the
// start wants, and so would stop the bubble's clock.
func (m watched) Add(r manager.Runnable) error {
	v := reflect.ValueOf(r)
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		do, name, most := v.Elem().FieldByName("Do"), v.Elem().FieldByName("Name"), v.Elem().FieldByName("MaxConcurrentReconciles")
		if do.IsValid() && do.CanSet() && name.IsValid() && name.Kind() == reflect.String {
			if inner, ok := reflect.TypeAssert[reconcile.Reconciler](do); ok {
				s := &slots{limit: 1}
				if most.IsValid() && most.CanSet() && most.CanInt() {
					s.limit = max(1, int(most.Int()))
					most.SetInt(int64(max(workers, s.limit)))
				}
				do.Set(reflect.ValueOf(passes{inner, m.process, name.String(), s}))
			} else {
				m.process.play.noteUnseen(name.String())
			}
		}
		if warm := v.Elem().FieldByName("EnableWarmup"); warm.IsValid() && warm.CanSet() && warm.Type() == reflect.TypeFor[*bool]() {
			warm.Set(reflect.ValueOf(new(false)))
		}
	}
	return m.Manager.Add(r)
}

// GetLogger keeps controllers silent or loud as the exploration is.
func (m watched) GetLogger() logr.Logger { return m.process.play.explorer.log }

// passes notes each reconcile of a controller, and lets it begin when it is its turn.
type passes struct {
	inner      reconcile.Reconciler
	process    *process
	controller string
	slots      *slots
}

type passKey struct{}

func (d passes) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	p := d.process.play
	object := req.Name
	if req.Namespace != "" {
		object = req.String()
	}
	k := &parked{process: d.process, as: parkedPass, what: d.controller + " " + object, turn: make(chan struct{}), slots: d.slots}
	if err := p.wait(ctx, k); err != nil {
		return reconcile.Result{}, err
	}
	index := p.beginPass(d.process, d.controller, object)
	d.slots.running++
	defer func() {
		panicked := recover()
		if panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
		if _, wanted := panicked.(*injected); panicked != nil && !wanted {
			p.notePanic(d.process, fmt.Sprintf("%v\n%s", panicked, debug.Stack()))
		}
		p.endPass(index, result, err)
		d.slots.running--
	}()
	return d.inner.Reconcile(context.WithValue(ctx, passKey{}, index), req)
}

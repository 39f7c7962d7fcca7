package looptest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	crrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/trimtab-dev/trimtab/internal/runnable"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// process is the manager of the process in which a controller runs. It implements [loop.QueueMaker].
type process struct {
	manager.Manager // nil: what is not below is not needed

	scheme       *runtime.Scheme
	mapper       meta.RESTMapper
	config       *rest.Config
	http         *http.Client
	log          *testenv.Log
	view         *view
	client, live client.Client
	events       recorder
	queue        *queue
	// passes is the controller, and kind that of its objects.
	passes reconcile.Reconciler
	kind   schema.GroupVersionKind
	// first are run before the first pass, others beside passes. addresses are bound by servers.
	first     []runnable.AtOnce
	others    []manager.Runnable
	addresses []net.Listener
	cancel    context.CancelFunc
	running   sync.WaitGroup

	mu    sync.Mutex
	trace []trace.Record // of the last pass
}

var _ loop.QueueMaker = (*process)(nil)

func (p *process) GetScheme() *runtime.Scheme           { return p.scheme }
func (p *process) GetRESTMapper() meta.RESTMapper       { return p.mapper }
func (p *process) GetClient() client.Client             { return p.client }
func (p *process) GetAPIReader() client.Reader          { return p.live }
func (p *process) GetCache() cache.Cache                { return p.view }
func (p *process) GetFieldIndexer() client.FieldIndexer { return p.view }
func (p *process) GetConfig() *rest.Config              { return p.config }
func (p *process) GetHTTPClient() *http.Client          { return p.http }
func (p *process) GetLogger() logr.Logger               { return logr.Discard() }

// A test sees the health of sources by their metrics.
func (p *process) AddReadyzCheck(string, healthz.Checker) error            { return nil }
func (p *process) AddHealthzCheck(string, healthz.Checker) error           { return nil }
func (p *process) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// Elected implements manager.Manager: the process leads.
func (p *process) Elected() <-chan struct{} { return done{}.Done() }

func (p *process) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), Logger: logr.Discard()}
}

func (p *process) GetEventRecorder(string) crrecorder.EventRecorder {
	return &annotated{recorder: &p.events}
}

// annotated is a recorder for which annotations do not count.
type annotated struct{ *recorder }

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (a *annotated) AnnotatedEventf(about, related runtime.Object, _ map[string]string, kind, reason, action, note string, args ...any) {
	a.Eventf(about, related, kind, reason, action, note, args...)
}

// NewQueue implements [loop.QueueMaker].
func (p *process) NewQueue(_ string, delays workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	p.queue.delays = delays
	return p.queue
}

// Add implements manager.Manager.
func (p *process) Add(r manager.Runnable) error {
	switch r := r.(type) {
	case reconcile.Reconciler:
		if p.passes != nil {
			return errors.New("looptest runs one controller; pass each to an Env of its own")
		}
		p.passes = r
	case runnable.AtOnce:
		p.first = append(p.first, r)
	case manager.RunnableFunc, runnable.Standing:
		p.others = append(p.others, r)
	case *manager.Server: // a network has no place in a bubble
		p.addresses = append(p.addresses, r.Listener)
	case interface{ Warmup(context.Context) error }: // a controller of another kind of requests
	default:
		return fmt.Errorf("looptest cannot run a controller that needs a running %T; test it on an API server, see packages testenv and component/componenttest", r)
	}
	return nil
}

// start starts the sources, and has the process lead.
func (p *process) start(ctx context.Context) error {
	ctx, p.cancel = context.WithCancel(ctx)
	if w, ok := p.passes.(interface{ Warmup(context.Context) error }); ok {
		if err := w.Warmup(ctx); err != nil {
			return fmt.Errorf("start the sources: %w", err)
		}
	}
	for _, r := range p.others {
		p.running.Go(func() { _ = r.Start(ctx) })
	}
	for _, f := range p.first {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stop ends what runs beside passes.
func (p *process) stop() {
	p.cancel()
	p.running.Wait()
	for _, l := range p.addresses {
		_ = l.Close()
	}
}

// Record implements trace.Sink.
func (p *process) Record(r trace.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trace = append(p.trace, r)
}

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/runnable"
	"github.com/trimtab-dev/trimtab/internal/servingcert"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// process is one run of the manager.
type process struct {
	design    *design
	settings  settings
	target    target
	log       logr.Logger
	health    *health
	metrics   *http.ServeMux
	informers *informers
	ring      *trace.Ring
	servers   servers
	access    *access
	fence     *fence              // nil without leader election
	keeper    *servingcert.Keeper // of the certificate of webhooks; nil if there are none
	requests  *requests           // to the API server
	began     time.Time
	mounted   chan struct{}   // closed when the manager is set up
	elected   <-chan struct{} // closed when this replica leads
	started   chan struct{}   // closed when the caches are synced
	others    atomic.Bool     // another replica leads
}

// runManager runs the controllers until ctx ends.
func runManager(ctx context.Context, o Options, s settings, log logr.Logger, stdout io.Writer) (err error) {
	d, err := o.read()
	if err != nil {
		return err
	}
	if err := d.govern(s); err != nil {
		return err
	}
	p := &process{
		design: d, settings: s, log: log, health: newHealth(), metrics: http.NewServeMux(),
		informers: &informers{scheme: d.scheme}, ring: trace.NewRing(trace.RingOptions{}), started: make(chan struct{}),
		mounted: make(chan struct{}), requests: newRequests(), began: time.Now(),
	}
	if p.target, err = findCluster(s); err != nil {
		return err
	}
	sink, closeTrace, err := traceTo(s.trace, stdout)
	if err != nil {
		return err
	}
	defer closeTrace(ctx)
	if err := p.serve(ctx); err != nil {
		return err
	}
	defer p.servers.stop(ctx)
	mgr, err := p.setUp(ctx, trace.Multi(p.ring, sink))
	if err != nil {
		return err
	}
	return p.start(ctx, mgr)
}

// serve binds all addresses first, so that an address in use is reported before anything else
// happens, and then serves on them.
func (p *process) serve(ctx context.Context) error {
	metrics := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	addresses := []struct {
		flag, address string
		listen        func(context.Context, string, string) (net.Listener, error)
		handler       http.Handler
	}{
		{"metrics-address", p.settings.metricsAddress, listen, p.metrics},
		{"health-address", p.settings.healthAddress, listen, p.health.handler()},
		{"debug-address", p.settings.debugAddress, listenLoopback, debugHandler(p.ring, metrics, p.describe)},
	}
	p.metrics.Handle("GET /metrics", metrics)
	p.health.addReady("manager", p.hasStarted)
	log := p.log.WithValues("name", p.design.options.Name, "version", version(), "namespace", p.target.namespace)
	for _, a := range addresses {
		l, err := a.listen(ctx, a.flag, a.address)
		if err != nil {
			p.servers.stop(ctx)
			return err
		}
		p.servers.serve(l, a.handler)
		log = log.WithValues(a.flag, addressOf(l))
	}
	log.Info("starting")
	if err := p.serveWebhooks(ctx); err != nil {
		p.servers.stop(ctx)
		return err
	}
	return nil
}

// setUp creates the manager after checking that the cluster can be used.
func (p *process) setUp(ctx context.Context, sink trace.Sink) (manager.Manager, error) {
	if err := p.target.reachable(ctx); err != nil {
		return nil, err
	}
	config := p.requests.config(p.target.config)
	if p.settings.leaderElect {
		p.fence = newFence(p.target.namespace, p.design.terms.Installation)
		config = p.fence.config(config)
	}
	mgr, err := manager.New(config, p.managerOptions(ctx))
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	if err := p.design.served(mgr.GetRESTMapper(), p.design.needed()); err != nil {
		return nil, err
	}
	if err := p.watchOver(mgr); err != nil {
		return nil, err
	}
	for i, c := range p.design.controllers {
		c.TraceTo(sink)
		p.design.spansTo(c)
		if err := c.SetupWithManager(mounted{mgr, p}); err != nil {
			return nil, err
		}
		if w, ok := c.(watched); ok {
			kind := p.design.kinds[i].Kind
			p.health.addLive(kind, notStuck(kind, w, p.settings.stuckAfter))
		}
	}
	if err := p.design.setup(mounted{mgr, p}); err != nil {
		return nil, err
	}
	p.elected = mgr.Elected()
	close(p.mounted)
	return mgr, nil
}

// needed returns the kinds that the API server must serve.
func (d *design) needed() []schema.GroupVersionKind {
	kinds := append([]schema.GroupVersionKind(nil), d.kinds...)
	for _, n := range d.needs {
		if !n.Later && !isRecord(n) { // no such resource is served
			kinds = append(kinds, n.GroupVersionKind)
		}
	}
	return kinds
}

func (p *process) managerOptions(ctx context.Context) manager.Options {
	o := p.design.managerOptions(p.settings)
	o.Logger = logr.FromSlogHandler(calmStop{logr.ToSlogHandler(p.log), func() bool { return ctx.Err() != nil }})
	o.LeaderElectionNamespace = p.target.namespace
	o.LeaderElectionReleaseOnCancel = true
	o.LeaseDuration = new(leaseDuration)
	o.GracefulShutdownTimeout = new(p.settings.shutdownTimeout)
	o.BaseContext = func() context.Context { return context.WithoutCancel(ctx) }
	// Health is served by this package instead, before the manager starts and with reasons.
	o.Metrics = metricsserver.Options{BindAddress: off}
	o.Cache.NewInformer = p.informers.make
	o.Controller = config.Controller{
		EnableWarmup: new(true),
		// A kind that cannot be read is reported by readiness and tried again. It must not end
		// the process, because other kinds may work.
		CacheSyncTimeout: 365 * 24 * time.Hour,
		// A process that embeds operators may run two controllers of the same name.
		SkipNameValidation: new(true),
	}
	return o
}

// cached returns the namespaces whose objects are cached; nil means all.
func (s *settings) cached() map[string]cache.Config {
	if len(s.watchNamespaces) == 0 {
		return nil
	}
	namespaces := map[string]cache.Config{}
	for _, namespace := range s.watchNamespaces {
		namespaces[namespace] = cache.Config{}
	}
	return namespaces
}

// worksIn returns the namespaces in which permissions are needed; the empty one means all.
func (s *settings) worksIn() []string {
	if len(s.watchNamespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.watchNamespaces
}

// watchOver installs the health checks.
func (p *process) watchOver(mgr manager.Manager) error {
	reviews, err := authorizationclient.NewForConfigAndClient(p.target.config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up the permission check: %w", err)
	}
	needed, err := permissions(slices.Concat(p.design.needs, p.design.webhookNeeds(p.settings)), p.design.resources)
	if err != nil {
		return err
	}
	p.access = &access{
		grant: p.grantCommand(), log: p.log, problem: errNotAsked,
		reviews: reviews.SelfSubjectAccessReviews(), needed: append(p.election(), p.webhookSecret()...),
	}
	needed, clusterWide := apart(needed)
	for _, n := range clusterWide {
		p.access.needed = append(p.access.needed, n.attributes(metav1.NamespaceAll)...)
	}
	for _, namespace := range p.settings.worksIn() {
		for _, n := range needed {
			p.access.needed = append(p.access.needed, n.attributes(namespace)...)
		}
	}
	p.health.addReady("permissions", p.access.check)
	p.health.addReady("cache", p.informers.check(p.design.kinds))
	return nil
}

// grantCommand returns the command that prints and applies the roles of this installation.
func (p *process) grantCommand() string {
	flags := ""
	if len(p.settings.watchNamespaces) > 0 {
		flags += " --watch-namespaces=" + strings.Join(p.settings.watchNamespaces, ",")
	}
	if p.settings.installation != "" {
		flags += " --installation=" + p.settings.installation
	}
	if flags != "" {
		flags = " --" + flags
	}
	return fmt.Sprintf("%s manifests rbac --namespace %s%s | kubectl apply --server-side -f -",
		p.design.options.Name, p.target.namespace, flags)
}

func (p *process) hasStarted(*http.Request) error {
	select {
	case <-p.started:
		return nil
	default:
		return errors.New("starting")
	}
}

// election returns the permissions that leader election needs.
func (p *process) election() []authorizationv1.ResourceAttributes {
	if !p.settings.leaderElect {
		return nil
	}
	var out []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "create", "update"} {
		a := authorizationv1.ResourceAttributes{
			Group: "coordination.k8s.io", Resource: "leases", Verb: verb, Namespace: p.target.namespace,
		}
		if verb != "create" {
			a.Name = p.design.terms.Installation
		}
		out = append(out, a)
	}
	return out
}

// start runs mgr until ctx has ended and running passes have finished.
func (p *process) start(ctx context.Context, mgr manager.Manager) error {
	err := mgr.Add(runnable.Standing(func(context.Context) error {
		close(p.started)
		return nil
	}))
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	asking, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.access.watch(asking) })
	wg.Go(func() { p.keepCertificate(asking) })
	p.health.sayStandby(p.waitsFor(mgr.Elected()))
	wg.Go(func() { p.standBy(asking, mgr.Elected()) })
	defer wg.Wait()
	defer cancel()
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if p.fence != nil {
		wg.Go(func() { p.fence.watch(asking, stop) })
	}
	err = p.await(leading, mgr)
	switch lost := context.Cause(leading); {
	case errors.Is(lost, errLeaseLost):
		return lost
	case err == nil:
		p.log.Info("stopped")
		return nil
	case ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("stopped while passes were still running after %s; the next process repeats them", p.settings.shutdownTimeout)
	}
	return fmt.Errorf("run the manager: %w", err)
}

// lease is the namespace and the name of the operator's lease.
func (p *process) lease() string { return p.target.namespace + "/" + p.design.terms.Installation }

// waitsFor returns what says in answers about health that this replica does not lead.
func (p *process) waitsFor(elected <-chan struct{}) func() string {
	return func() string {
		select {
		case <-elected:
			return ""
		default:
		}
		if p.others.Load() {
			return "standing by: another replica holds the lease " + p.lease() + "\n"
		}
		return "waiting for the lease " + p.lease() + "\n"
	}
}

// standBy says while another replica leads that this one is warm and waits, and when it takes over.
func (p *process) standBy(ctx context.Context, elected <-chan struct{}) {
	select {
	case <-p.started:
	case <-ctx.Done():
		return
	}
	select {
	case <-elected:
		return
	case <-time.After(time.Second): // the first replica is the leader at once
	case <-ctx.Done():
		return
	}
	p.others.Store(true)
	p.log.Info("standing by with synced caches until the lease is free", "lease", p.lease())
	select {
	case <-elected:
		p.log.Info("took over", "lease", p.lease())
	case <-ctx.Done():
	}
}

// await is like mgr.Start, but also returns when ctx ends while the caches are syncing:
// controller-runtime 0.25 goes on waiting for them, forever if a kind cannot be read. No controller
// is running at that point, so nothing is interrupted.
func (p *process) await(ctx context.Context, mgr manager.Manager) error {
	result := make(chan error, 1)
	go func() { result <- mgr.Start(ctx) }()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case <-p.started:
		return <-result
	default:
		return nil
	}
}

// mounted is the manager as controllers see it. Their checks and handlers are added to the servers
// of the process.
type mounted struct {
	manager.Manager
	process *process
}

// AddHealthzCheck adds a check to /livez.
func (m mounted) AddHealthzCheck(name string, check healthz.Checker) error {
	m.process.health.addLive(name, check)
	return nil
}

// AddReadyzCheck adds a check to /readyz.
func (m mounted) AddReadyzCheck(name string, check healthz.Checker) error {
	m.process.health.addReady(name, check)
	return nil
}

// AddMetricsServerExtraHandler serves h next to the metrics.
func (m mounted) AddMetricsServerExtraHandler(path string, h http.Handler) error {
	m.process.metrics.Handle(path, h)
	return nil
}

// Leads implements [loop.Leader].
func (m mounted) Leads() bool { return m.process.fence == nil || !m.process.fence.expired() }

// traceTo opens the destination of --trace. A regular file is written directly, so that its lines
// survive a crash of the process. Anything else may block and is written through a buffer.
func traceTo(name string, stdout io.Writer) (trace.Sink, func(context.Context), error) {
	out := stdout
	closeFile := func() error { return nil }
	switch name {
	case "":
		return nil, func(context.Context) {}, nil
	case "-":
	default:
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("--trace: %w", err)
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return trace.JSON(f), func(context.Context) { _ = f.Close() }, nil
		}
		out, closeFile = f, f.Close
	}
	buffer := trace.NewBuffer(trace.JSON(out), 0)
	return buffer, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = buffer.Close(ctx)
		_ = closeFile()
	}, nil
}

var (
	_ Controller  = (*loop.Controller[*corev1.ConfigMap])(nil)
	_ loop.Leader = mounted{}
)

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/devcluster/internal/folder"
	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
	"github.com/trimtab-dev/trimtab/devcluster/internal/release"
)

// Version is the Kubernetes release that a Cluster runs and reports.
const Version = release.Version

// Options say what may differ between clusters. The zero value is a cluster on
// a free port that is gone when it stops.
type Options struct {
	// Data is the folder for everything that survives a restart: objects,
	// certificates, the port. Empty means a temporary folder that goes with the
	// cluster, written without fsync.
	Data string

	// Port is where the API server listens on 127.0.0.1. Zero means the port
	// that Data remembers, else a free one.
	Port int

	// Kubeconfig is where the administrator's kubeconfig is written. Empty means
	// the file "kubeconfig" in the data folder.
	Kubeconfig string

	// AuditLog is the file to which one JSON line per API request is appended:
	// who did what to which object, and the answer's code. Empty means none.
	AuditLog string

	// Log is the file for what the components say. Empty means the file
	// "devcluster.log" in the data folder. It is cut at each start.
	Log string

	// Nodes is how many fake nodes there are. Zero means 1; negative means none,
	// and pods stay Pending.
	Nodes int
}

func (o Options) check() error {
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535; name another, or 0 for a free one", o.Port)
	}
	return nil
}

func (o Options) nodes() int {
	switch {
	case o.Nodes == 0:
		return 1
	case o.Nodes < 0:
		return 0
	}
	return o.Nodes
}

// Info describes a running cluster. It is kept as JSON in the file
// "cluster.json" of the data folder for as long as the cluster runs.
type Info struct {
	// Ready is true in every Info that the package hands out.
	Ready bool `json:"ready"`
	// URL is the API server's address.
	URL string `json:"url"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Version is the Kubernetes release, such as v1.37.1.
	Version string `json:"version"`
	// PID is the process that runs the cluster.
	PID int `json:"pid"`
	// Seconds is how long the start took.
	Seconds float64 `json:"seconds"`
	// Data is the path of the data folder.
	Data string `json:"data"`
}

// Cluster is a running control plane.
type Cluster struct {
	info   Info
	config *rest.Config

	folder   *folder.Folder
	sockets  *folder.Folder
	pki      pki.Dir
	listener net.Listener
	options  Options
	log      *os.File
	slog     *slog.Logger

	// fail ends the cluster with a reason; ended is done from then on.
	fail  context.CancelCauseFunc
	ended context.Context //nolint:containedctx // the cluster's own life, not a call's

	// stops undo what Start did; they run in reverse.
	stops []func() error
	// finish runs stops once, for whoever comes first.
	finish func() error
}

// used guards against a second cluster: Kubernetes keeps feature gates, metrics
// and loggers in variables of the process and refuses to set them up twice.
//
//arch:state mirrors what is global in Kubernetes
var used atomic.Bool

// Start brings a cluster up and returns when the API server is ready, the
// namespace default has its ServiceAccount and all nodes are Ready. The cluster
// runs until ctx is done, Stop is called, or a component gives up.
//
// A process can start one cluster in its life; start further ones through the
// binary. Start takes over this process's Kubernetes logging (klog).
func Start(ctx context.Context, o Options) (*Cluster, error) {
	began := time.Now()
	if err := o.check(); err != nil {
		return nil, err
	}
	if used.Swap(true) {
		return nil, errors.New("this process has started a cluster before; start another one as a process of its own, with cmd/devcluster")
	}
	if err := release.Apply(); err != nil {
		return nil, err
	}
	c := &Cluster{options: o}
	ctx, c.fail = context.WithCancelCause(ctx)
	c.ended = ctx
	c.finish = sync.OnceValue(c.stop)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(c.whyNot(err), c.finish())
	}
	c.info = Info{
		Ready: true, URL: c.config.Host, Kubeconfig: c.kubeconfig(), Version: Version,
		PID: os.Getpid(), Seconds: time.Since(began).Seconds(), Data: c.folder.Path(),
	}
	if err := c.announce(); err != nil {
		return nil, errors.Join(err, c.finish())
	}
	context.AfterFunc(ctx, func() { _ = c.finish() }) // Wait answers what it says
	return c, nil
}

// start does the steps in the order in which they need each other.
func (c *Cluster) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.openFolder,
		c.openLog,
		c.ensureCertificates,
		c.listen,
		c.writeKubeconfigs,
		c.openSockets,
		c.startEtcd,
		c.startAPIServer,
		c.startControllers,
		c.startScheduler,
		c.startNodes,
		c.waitUntilUsable,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// whyNot prefers the reason why a component ended over the failed wait that it
// caused.
func (c *Cluster) whyNot(err error) error {
	cause := context.Cause(c.ended)
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// stopPatience is how long a component may take to stop. Some controllers
// finish their work first, and nobody will see the result.
const stopPatience = 3 * time.Second

// run starts a component that works until its context is done. When it returns
// earlier, the cluster ends. The end of ctx alone does not stop it: that is up
// to stop, which knows the order.
func (c *Cluster) run(ctx context.Context, name string, component func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := component(ctx)
		if ctx.Err() == nil {
			c.fail(fmt.Errorf("%s ended: %w", name, orUnexpected(err)))
		}
	}()
	c.onStop(func() error {
		cancel()
		select {
		case <-done:
		case <-time.After(stopPatience):
			// Left behind: the process ends soon, and the data is safe at any instant.
			c.slog.Warn("component did not stop in time", "component", name, "patience", stopPatience)
		}
		return nil
	})
}

func orUnexpected(err error) error {
	if err == nil {
		return errors.New("it returned without being asked to")
	}
	return err
}

func (c *Cluster) onStop(f func() error) { c.stops = append(c.stops, f) }

func (c *Cluster) stop() error {
	c.fail(nil)
	var errs []error
	for _, undo := range slices.Backward(c.stops) {
		errs = append(errs, undo())
	}
	return errors.Join(errs...)
}

// Stop ends the cluster and removes what is temporary. Safe to repeat.
func (c *Cluster) Stop() error { return c.finish() }

// Wait returns when the cluster has ended: nil after Stop or when the context
// of Start was canceled, else the reason.
func (c *Cluster) Wait() error {
	<-c.ended.Done()
	err := c.finish()
	if cause := context.Cause(c.ended); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

// Info describes the cluster.
func (c *Cluster) Info() Info { return c.info }

// Config is the administrator's access.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

func (c *Cluster) openFolder(context.Context) error {
	var err error
	if c.options.Data == "" {
		c.folder, err = folder.Temp(os.TempDir())
	} else {
		c.folder, err = folder.Open(c.options.Data)
	}
	if err != nil {
		return err
	}
	c.onStop(c.folder.Close)
	return removeFile(c.folder.Join(infoFile)) // a killed cluster left it
}

func (c *Cluster) ensureCertificates(context.Context) error {
	var err error
	c.pki, err = pki.Ensure(c.folder.Join("pki"), time.Now())
	if err != nil {
		return c.damaged(err)
	}
	return nil
}

// because points at the log, which is the only one to know more.
func (c *Cluster) because() string {
	if c.folder.Temporary() && c.options.Log == "" {
		return "start it with a file for the log to see why"
	}
	return "the log says why: " + c.log.Name()
}

// damaged tells the way out of a data folder that cannot be used.
func (c *Cluster) damaged(err error) error {
	if c.folder.Temporary() {
		return err
	}
	return fmt.Errorf("data folder %q is damaged: %w; restore it from a copy, or remove it to start empty", c.folder.Path(), err)
}

func (c *Cluster) adminConfig() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", c.kubeconfig())
}

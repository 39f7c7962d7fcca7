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

// Options configure a cluster. The zero value is a cluster on a free port whose
// data is removed when it stops.
type Options struct {
	// Data is the folder for everything that survives a restart: objects,
	// certificates, the port. Empty means a temporary folder, which is written
	// without fsync and removed when the cluster stops.
	Data string

	// Port is the port of the API server on 127.0.0.1. Zero means the port
	// stored in Data, or a free one.
	Port int

	// Kubeconfig is the path to which the administrator's kubeconfig is written.
	// Empty means the file "kubeconfig" in the data folder.
	Kubeconfig string

	// AuditLog is the file to which one JSON line is appended for each API
	// request: the user, the verb, the object and the status code. Empty means
	// none.
	AuditLog string

	// Log is the file for the components' logs. Empty means the file
	// "devcluster.log" in the data folder. It is truncated at each start.
	Log string

	// Nodes is the number of simulated nodes. Zero means 1. A negative number
	// means none, and then nothing is simulated: pods and claims stay Pending, and
	// nothing publishes addresses or scales.
	Nodes int
}

func (o Options) check() error {
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("port %d is not between 1 and 65535; choose another, or 0 for a free one", o.Port)
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

// Info describes a running cluster. While the cluster runs, the file
// "cluster.json" in the data folder contains it as JSON.
type Info struct {
	// Ready is always true.
	Ready bool `json:"ready"`
	// URL is the address of the API server.
	URL string `json:"url"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Version is the Kubernetes release, such as v1.37.1.
	Version string `json:"version"`
	// PID is the id of the process that runs the cluster.
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

	// fail ends the cluster with a reason; ended is done then.
	fail  context.CancelCauseFunc
	ended context.Context //nolint:containedctx // the cluster's own life, not a call's

	// stops undo what Start did. They run in reverse order.
	stops []func() error
	// finish runs stops once.
	finish func() error
}

// used prevents a second cluster: Kubernetes keeps feature gates, metrics and
// loggers in global variables and refuses to set them up twice.
//
//arch:state mirrors what is global in Kubernetes
var used atomic.Bool

// Start starts a cluster. It returns when the API server is ready, the namespace
// default has its service account and all nodes are Ready. The cluster runs until
// ctx is done, Stop is called, or a component fails.
//
// A process can start only one cluster; use the binary for more. Start redirects
// the Kubernetes logging (klog) of this process.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	began := time.Now()
	if err := o.check(); err != nil {
		return nil, err
	}
	if used.Swap(true) {
		return nil, errors.New("this process has already started a cluster; start another one with cmd/devcluster")
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
	context.AfterFunc(ctx, func() { _ = c.finish() }) // Wait returns its error
	return c, nil
}

// start runs the steps of Start in the order of their dependencies.
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
		c.createClasses,
		c.startControllers,
		c.startScheduler,
		c.startSimulation,
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

// patience is how long a step of the start may wait. It takes seconds, and a minute or two while the machine does
// much else.
const patience = 5 * time.Minute

// waiting returns a context for a step that waits until something is ready. If that takes too long, late is its cause.
func (c *Cluster) waiting(ctx context.Context, late *lateError) (context.Context, context.CancelFunc) {
	late.details = c.because()
	return context.WithTimeoutCause(ctx, patience, late)
}

// lateError is the error for a step of the start that takes too long.
type lateError struct {
	what    string // that is not ready
	checks  string // that have not succeeded, or empty if it has not said
	details string // where to find them
}

func (e *lateError) Error() string {
	checks := ""
	if e.checks != "" {
		checks = ": it waits for " + e.checks
	}
	return fmt.Sprintf("%s is not ready after %s%s; %s", e.what, patience, checks, e.details)
}

// whyNot returns the reason why a component ended, if one did, instead of the
// failed wait that this caused.
func (c *Cluster) whyNot(err error) error {
	cause := context.Cause(c.ended)
	if cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// stopPatience is how long a component may take to stop. Some controllers
// finish their work first, although nobody will see the result.
const stopPatience = 3 * time.Second

// run starts a component that runs until its context is done. If it returns
// earlier, the cluster ends. The end of ctx does not stop it directly: components
// are stopped in order.
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
			// The component is left running: the process ends soon, and the data is
			// always consistent.
			c.slog.Warn("component did not stop in time", "component", name, "patience", stopPatience)
		}
		return nil
	})
}

func orUnexpected(err error) error {
	if err == nil {
		return errors.New("it returned unexpectedly")
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

// Stop stops the cluster and removes temporary files. It may be called more than
// once.
func (c *Cluster) Stop() error { return c.finish() }

// Wait waits until the cluster has ended. It returns nil after Stop, or if the
// context of Start was canceled, and otherwise the reason.
func (c *Cluster) Wait() error {
	<-c.ended.Done()
	err := c.finish()
	if cause := context.Cause(c.ended); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

// Info returns a description of the cluster.
func (c *Cluster) Info() Info { return c.info }

// Config returns the client configuration of the administrator.
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
	return removeFile(c.folder.Join(infoFile)) // left by a killed cluster
}

func (c *Cluster) ensureCertificates(context.Context) error {
	var err error
	c.pki, err = pki.Ensure(c.folder.Join("pki"), time.Now())
	if err != nil {
		return c.damaged(err)
	}
	return nil
}

// because refers to the log, which has the details.
func (c *Cluster) because() string {
	if c.folder.Temporary() && c.options.Log == "" {
		return "set a data folder, or a file for the log, to see why"
	}
	return "see the log: " + c.log.Name()
}

// damaged returns the error for a data folder that cannot be used.
func (c *Cluster) damaged(err error) error {
	if c.folder.Temporary() {
		return err
	}
	return fmt.Errorf("data folder %q is damaged: %w; restore it from a copy, or remove it to start with an empty cluster", c.folder.Path(), err)
}

func (c *Cluster) adminConfig() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", c.kubeconfig())
}

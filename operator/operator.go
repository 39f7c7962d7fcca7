package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// Options describe an operator. Required are Name and one of Controllers and Setup.
type Options struct {
	// Name is the operator's name in manifests, of its lease and in logs: a DNS label such
	// as "nats-operator".
	Name string

	// AddToScheme registers the operator's kinds. Those of Kubernetes itself are
	// registered already. Nil means there are no others.
	AddToScheme func(*runtime.Scheme) error

	// CRDs holds the generated CustomResourceDefinitions as YAML files, usually embedded.
	// Nil means the operator brings none.
	CRDs fs.FS

	// Flags adds the operator's own flags. Nil means it has none.
	Flags func(*pflag.FlagSet)

	// Controllers makes the controllers once flags are parsed. It is also called to print
	// manifests, with nothing to connect to and flags at their defaults, so it only makes
	// values: connections are opened by the first pass that needs one.
	Controllers func() ([]Controller, error)

	// Setup adds to the manager what is not a [Controller]: an ordinary controller of
	// controller-runtime or its builder, webhooks, indexes, runnables. It is called once, before
	// anything starts, when the manager is to run; not to print manifests. Nil adds nothing.
	Setup func(manager.Manager) error

	// Needs are the permissions of what Setup adds; they go into the generated role.
	Needs []loop.Need
}

// Controller is what an operator runs. *loop.Controller is one.
type Controller interface {
	// GroupVersionKind is the kind it reconciles.
	GroupVersionKind(*runtime.Scheme) (schema.GroupVersionKind, error)
	// Needs are the permissions it uses; the generated role consists of them.
	Needs(*runtime.Scheme) ([]loop.Need, error)
	// Govern is called with what the flags decide, before any other method below.
	Govern(loop.Terms)
	// TraceTo is called before SetupWithManager with the process's own sink.
	TraceTo(trace.Sink)
	// SetupWithManager adds it to the manager.
	SetupWithManager(manager.Manager) error
}

// Main runs the operator that o describes with the process's arguments, and exits. SIGTERM
// and SIGINT stop it gracefully; a second one, at once.
func Main(o Options) {
	root := context.Background() //nolint:forbidigo // main is here, see below
	ctx, stop := signal.NotifyContext(root, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, o, logForProcess)) //nolint:forbidigo // the one place where operators exit
}

// Run is [Main] for tests and for programs that embed an operator: it returns the exit
// code, ends when ctx does, and leaves the process's loggers and signals alone.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, o Options) int {
	return run(ctx, args, stdout, stderr, o, func(logr.Logger) {})
}

// logForProcess sends what libraries log on their own the same way.
func logForProcess(log logr.Logger) {
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
}

// errReported is returned for a failure that is in the log already.
var errReported = errors.New("reported already")

func run(ctx context.Context, args []string, stdout, stderr io.Writer, o Options, useLog func(logr.Logger)) int {
	err := o.check()
	if err == nil {
		cmd := command(o, useLog) //nolint:contextcheck // cobra hands ctx to commands
		cmd.SetArgs(withDefaultCommand(args))
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err = cmd.ExecuteContext(ctx)
	}
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errReported):
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", o.Name, err) // nobody to tell
	}
	return 1
}

// check reports every problem of the options at once.
func (o Options) check() error {
	var problems []error
	if msgs := validation.IsDNS1123Label(o.Name); len(msgs) > 0 {
		problems = append(problems, fmt.Errorf("operator name %q: %s", o.Name, strings.Join(msgs, "; ")))
	}
	if o.Controllers == nil && o.Setup == nil {
		problems = append(problems, errors.New("operator.Options has neither Controllers nor Setup; return the controllers to run, or add to the manager what is to run"))
	}
	return errors.Join(problems...)
}

// scheme returns the kinds of Kubernetes and those of the operator.
func (o Options) scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of Kubernetes: %w", err)
	}
	if o.AddToScheme == nil {
		return scheme, nil
	}
	if err := o.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the operator's kinds: %w", err)
	}
	return scheme, nil
}

// design is what an operator consists of, known without a cluster.
type design struct {
	options     Options
	scheme      *runtime.Scheme
	controllers []Controller
	kinds       []schema.GroupVersionKind // of controllers, in their order
	needs       []loop.Need
	recorded    []schema.GroupVersionKind // those of controllers that keep records
	resources   resources
	terms       loop.Terms
}

// read makes the controllers and asks them what they need.
func (o Options) read() (*design, error) {
	scheme, err := o.scheme()
	if err != nil {
		return nil, err
	}
	crds, err := readCRDs(o.CRDs)
	if err != nil {
		return nil, err
	}
	d := &design{options: o, scheme: scheme, resources: resources{crds}, needs: slices.Clone(o.Needs)}
	if o.Controllers != nil {
		if d.controllers, err = o.Controllers(); err != nil {
			return nil, err
		}
	}
	for _, c := range d.controllers {
		gvk, err := c.GroupVersionKind(scheme)
		if err != nil {
			return nil, unregistered(err)
		}
		if err := d.canTell(gvk); err != nil {
			return nil, err
		}
		needs, err := c.Needs(scheme)
		if err != nil {
			return nil, fmt.Errorf("the permissions of controller %s: %w", gvk.Kind, err)
		}
		d.kinds = append(d.kinds, gvk)
		d.needs = append(d.needs, needs...)
		if slices.ContainsFunc(needs, isRecord) {
			d.recorded = append(d.recorded, gvk)
		}
	}
	return d, nil
}

// canTell fails if the operator's own definition of a kind keeps it from telling anything of its
// objects. What the cluster has may be older; that shows at the first write of a status.
func (d *design) canTell(gvk schema.GroupVersionKind) error {
	obj, err := d.scheme.New(gvk)
	if err != nil {
		return unregistered(err)
	}
	if _, tells := obj.(api.Object); !tells || d.resources.servesStatus(gvk) {
		return nil
	}
	return fmt.Errorf("the CRD of %[1]s has no status subresource, so that nobody could be told anything of its objects; "+
		"put //+kubebuilder:subresource:status above type %[1]s, and run its code generation again", gvk.Kind)
}

// unregistered words a controller's kind that the scheme does not have. The error names the
// scheme too, by a line of apimachinery's source, which helps nobody.
func unregistered(err error) error {
	said, _, _ := strings.Cut(err.Error(), " in scheme ")
	return fmt.Errorf("a controller's kind is not registered; add it in operator.Options.AddToScheme: %s", said)
}

// govern takes in what s decides, and fails if the operator cannot run with it.
func (d *design) govern(s settings) error {
	var err error
	if d.terms, err = s.terms(d.options.Name); err != nil {
		return err
	}
	for _, c := range d.controllers {
		c.Govern(d.terms)
	}
	if len(s.watchNamespaces) == 0 {
		return nil
	}
	for _, kind := range d.kinds {
		if d.resources.clusterScoped(kind.GroupKind()) {
			return fmt.Errorf("--watch-namespaces: %s has no namespace; leave the flag out", kind.Kind)
		}
	}
	return nil
}

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	"github.com/trimtab-dev/trimtab/webhook"
)

// Options describe an operator. Name is required, and so is at least one of Controllers and Setup.
type Options struct {
	// Name is the operator's name in manifests, leases and logs: a DNS label such as
	// "nats-operator".
	Name string

	// AddToScheme registers the operator's kinds. The kinds of Kubernetes itself are already
	// registered. Nil means that there are no others.
	AddToScheme func(*runtime.Scheme) error

	// CRDs contains the generated CustomResourceDefinitions as YAML files, usually embedded.
	// Nil means that the operator has none.
	CRDs fs.FS

	// Flags defines the operator's own flags. Nil means that it has none.
	Flags func(*pflag.FlagSet)

	// Controllers returns the controllers. It is called after the flags have been parsed, and
	// also to print manifests, when the flags have their defaults and there is no cluster. It
	// must not open connections; the first pass that needs one does that.
	Controllers func() ([]Controller, error)

	// Spans opens a span for each pass of the controllers that have no spans of their own. Package
	// trace/spans has those of OpenTelemetry. Nil opens none.
	Spans trace.Spans

	// Webhooks set defaults in objects, and validate them. The manifests include their
	// configurations, and the operator keeps their certificate. Nil means that there are none.
	Webhooks []*webhook.Webhook

	// Setup adds to the manager whatever is not a [Controller]: ordinary controllers of
	// controller-runtime, webhooks, indexes, runnables. It is called once before the manager
	// starts, and not to print manifests. Nil adds nothing.
	Setup func(manager.Manager) error

	// Needs are the permissions that Setup's additions need. They become part of the generated
	// role.
	Needs []loop.Need
}

// Controller is a controller that an operator can run, such as *loop.Controller.
type Controller interface {
	// GroupVersionKind returns the kind that the controller reconciles.
	GroupVersionKind(*runtime.Scheme) (schema.GroupVersionKind, error)
	// Needs returns the permissions that the controller uses. The generated role consists of
	// the needs of all controllers.
	Needs(*runtime.Scheme) ([]loop.Need, error)
	// Govern is called with the settings from the flags, before the methods below.
	Govern(loop.Terms)
	// TraceTo is called with the sink of the process, before SetupWithManager.
	TraceTo(trace.Sink)
	// SetupWithManager adds the controller to the manager.
	SetupWithManager(manager.Manager) error
}

// Main runs the operator that o describes with the arguments of the process, and exits. SIGTERM and
// SIGINT stop it gracefully; a second signal stops it at once.
func Main(o Options) {
	root := context.Background() //nolint:forbidigo // main is here, see below
	ctx, stop := signal.NotifyContext(root, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, o, logForProcess)) //nolint:forbidigo // the one place where operators exit
}

// Run is like [Main], but for tests and for programs that embed an operator: it returns the exit
// code, stops when ctx ends, and does not touch the loggers and signals of the process.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, o Options) int {
	return run(ctx, args, stdout, stderr, o, func(logr.Logger) {})
}

// logForProcess makes libraries use the same logger.
func logForProcess(log logr.Logger) {
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
}

// errReported is returned for a failure that has already been logged.
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
	case errors.Is(err, errChanges):
		return 2
	case !errors.Is(err, errReported):
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", o.Name, err) // there is nowhere to report it
	}
	return 1
}

// check reports all problems of the options at once.
func (o Options) check() error {
	var problems []error
	if msgs := validation.IsDNS1123Label(o.Name); len(msgs) > 0 {
		problems = append(problems, fmt.Errorf("operator name %q: %s", o.Name, strings.Join(msgs, "; ")))
	}
	if o.Controllers == nil && o.Setup == nil {
		problems = append(problems, errors.New("operator.Options has neither Controllers nor Setup; set at least one of them"))
	}
	return errors.Join(problems...)
}

// scheme returns a scheme with the kinds of Kubernetes and of the operator.
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

// design is everything about an operator that is known without a cluster.
type design struct {
	options     Options
	scheme      *runtime.Scheme
	controllers []Controller
	kinds       []schema.GroupVersionKind // of controllers, in their order
	named       map[string]schema.GroupVersionKind
	needs       []loop.Need
	recorded    []schema.GroupVersionKind // those of controllers that keep records
	resources   resources
	terms       loop.Terms
	hooks       []hook
}

// read creates the controllers and collects their needs.
func (o Options) read() (*design, error) {
	scheme, err := o.scheme()
	if err != nil {
		return nil, err
	}
	crds, err := readCRDs(o.CRDs)
	if err != nil {
		return nil, err
	}
	return o.design(scheme, crds)
}

// design returns what the options describe with a scheme and CRDs that were read before.
func (o Options) design(scheme *runtime.Scheme, crds []*apiextensionsv1.CustomResourceDefinition) (*design, error) {
	d := &design{options: o, scheme: scheme, resources: resources{crds}, needs: slices.Clone(o.Needs), named: map[string]schema.GroupVersionKind{}}
	if o.Controllers != nil {
		var err error
		if d.controllers, err = o.Controllers(); err != nil {
			return nil, err
		}
	}
	for _, c := range d.controllers {
		gvk, err := c.GroupVersionKind(scheme)
		if err != nil {
			return nil, unregistered(err)
		}
		if err := d.checkStatus(gvk); err != nil {
			return nil, err
		}
		if err := d.checkName(c, gvk); err != nil {
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
	var err error
	d.hooks, err = d.readWebhooks()
	return d, err
}

// checkName returns an error if an earlier controller has the same name, from which its field manager is made.
func (d *design) checkName(c Controller, gvk schema.GroupVersionKind) error {
	n, ok := c.(interface {
		Name(*runtime.Scheme) (string, error)
	})
	if !ok {
		return nil
	}
	name, err := n.Name(d.scheme)
	if err != nil {
		return unregistered(err)
	}
	if other, taken := d.named[name]; taken {
		return fmt.Errorf("the controllers of %s and of %s are both named %q and have one field manager, so each would take back what the other one writes; "+
			"set Options.Name of one of them", other.GroupKind(), gvk.GroupKind(), name)
	}
	d.named[name] = gvk
	return nil
}

// checkStatus returns an error if the operator's own CRD of a kind does not allow it to write status.
// The CRD in the cluster may be older; then the first write of a status fails.
func (d *design) checkStatus(gvk schema.GroupVersionKind) error {
	obj, err := d.scheme.New(gvk)
	if err != nil {
		return unregistered(err)
	}
	if _, ok := api.StatusOf(obj); !ok || d.resources.servesStatus(gvk) {
		return nil
	}
	return fmt.Errorf("the CRD of %[1]s has no status subresource, so status could not be written; "+
		"put //+kubebuilder:subresource:status above type %[1]s and generate the CRD again", gvk.Kind)
}

// unregistered returns the error for a controller's kind that the scheme does not have. The
// original error also names the scheme by a line of apimachinery's source, which helps nobody.
func unregistered(err error) error {
	said, _, _ := strings.Cut(err.Error(), " in scheme ")
	return fmt.Errorf("the kind of a controller is not registered; add it in operator.Options.AddToScheme: %s", said)
}

// govern applies the settings s and returns an error if the operator cannot run with them.
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
			return fmt.Errorf("--watch-namespaces: %s is cluster-scoped; omit the flag", kind.Kind)
		}
	}
	return nil
}

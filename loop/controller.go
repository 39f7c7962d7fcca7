package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/capability"
	"github.com/trimtab-dev/trimtab/internal/runnable"
	"github.com/trimtab-dev/trimtab/internal/safelog"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/logs"
	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Controller runs a [Reconciler] over the objects of kind T. Make one with [New]; its
// zero value is not usable.
type Controller[T client.Object] struct {
	author  Reconciler[T]
	options Options[T]
	memory  *memory
	fields  fields
	views   *views // what passes read from the cache; nil without one

	// The fields below are set by SetupWithManager.
	name      string
	finalizer string // empty if the author has nothing to clean up
	unneeded  string // a finalizer that objects may have and do not need any more; usually empty
	gvk       schema.GroupVersionKind
	scheme    *runtime.Scheme
	client    client.Client
	live      client.Reader
	clientset clientset
	leader    Leader // nil: passes run in a process that leads
	events    events.EventRecorder
	log       logr.Logger //trimtab:allow reconcilelog for what is no pass: the start, the end of an object, bugs of the loop itself
	sink      trace.Sink
	spans     trace.Spans
	passes    passCounter
	terms     Terms
	// lastPassMissing: the CRD has no status.lastPass.
	lastPassMissing atomic.Bool
	// onEnd are called when a pass ends that called the author's code, and when the object is gone.
	onEnd    []func(types.NamespacedName)
	observes bool // the loop sets status.observedGeneration of a kind without the common status
	// sharers replaces [Run.Sharing] where there is no cache.
	sharers func(ctx context.Context, key string) ([]T, error)
}

// New makes a controller that calls r. It panics if r is nil. [Controller.SetupWithManager] and
// [Controller.Needs] report all other problems with r or the options.
func New[T client.Object](r Reconciler[T], o Options[T]) *Controller[T] {
	if r == nil {
		panic("loop: New needs a Reconciler; pass the value that implements Reconcile")
	}
	return &Controller[T]{author: r, options: o, memory: newMemory(), fields: fieldsOf(reflect.TypeFor[T]()), sink: o.Trace}
}

// TraceTo sends the trace of all passes to sink, unless [Options.Trace] is set. Call it before
// SetupWithManager.
func (c *Controller[T]) TraceTo(sink trace.Sink) {
	if c.sink == nil {
		c.sink = sink
	}
}

// SpansTo opens a span of spans for each pass, unless the controller has spans already. Call it before SetupWithManager.
func (c *Controller[T]) SpansTo(spans trace.Spans) {
	if c.spans == nil {
		c.spans = spans
	}
}

// Name returns the name of the controller in logs and metrics: [Options.Name], or that of its kind in lowercase.
func (c *Controller[T]) Name(scheme *runtime.Scheme) (string, error) {
	gvk, err := c.GroupVersionKind(scheme)
	return or(c.options.Name, strings.ToLower(gvk.Kind)), err
}

// Govern sets the operator's terms. Call it before SetupWithManager.
func (c *Controller[T]) Govern(terms Terms) { c.terms = terms }

// GroupVersionKind returns the kind of T in scheme.
func (c *Controller[T]) GroupVersionKind(scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(cached.New[T](), scheme)
}

// Needs returns the permissions that the controller needs: those of the loop, those of its sources,
// and [Options.Needs].
func (c *Controller[T]) Needs(scheme *runtime.Scheme) ([]Need, error) {
	gvk, err := c.GroupVersionKind(scheme)
	if err != nil {
		return nil, unregistered("the controller's kind", err)
	}
	if err := c.check(or(c.options.Name, strings.ToLower(gvk.Kind))); err != nil {
		return nil, err
	}
	needs := []Need{
		{GroupVersionKind: gvk, Verbs: []string{"get", "list", "watch", "patch"}},
		{GroupVersionKind: gvk, Subresource: "status", Verbs: []string{"patch"}},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
			Verbs:            []string{"create", "patch"},
		},
	}
	for _, s := range c.options.Sources {
		for _, obj := range s.Watches() {
			watched, err := apiutil.GVKForObject(obj, scheme)
			if err != nil {
				return nil, unregistered("a kind that a source watches", err)
			}
			needs = append(needs, Need{GroupVersionKind: watched, Verbs: []string{"list", "watch"}})
		}
		for _, need := range s.Needs() {
			of, err := apiutil.GVKForObject(need.Of, scheme)
			if err != nil {
				return nil, err
			}
			needs = append(needs, Need{GroupVersionKind: of, Verbs: need.Verbs, ClusterWide: need.ClusterWide, Later: need.Later})
		}
	}
	return append(needs, c.options.Needs...), nil
}

// SetupWithManager adds the controller to mgr.
func (c *Controller[T]) SetupWithManager(mgr manager.Manager) error {
	if err := c.wire(mgr); err != nil {
		return err
	}
	registerMetrics()
	c.startMetrics()
	ctrl, err := controller.New(c.name, mgr, controller.Options{
		Reconciler:              c,
		MaxConcurrentReconciles: c.options.workers(),
		RateLimiter:             c.memory,
		EnableWarmup:            new(true),
		Logger:                  aboutPasses(mgr.GetLogger()),
		NewQueue:                queueOf(mgr),
	})
	if err != nil {
		return fmt.Errorf("set up controller %s, which needs a name (Options.Name) that no other controller of the process has: %w", c.name, err)
	}
	own := source.Kind(mgr.GetCache(), cached.New[T](), countEvents(c), newsFilter(c))
	if err := ctrl.Watch(own); err != nil {
		return fmt.Errorf("watch %s: %w", c.gvk.Kind, err)
	}
	if indexer, ok := as[Indexer[T]](c.author); ok {
		if err := c.watchSharing(mgr, ctrl, indexer); err != nil {
			return err
		}
	}
	for n, s := range c.options.Sources {
		target := trigger.Target[T]{
			Name: fmt.Sprintf("%s-source-%d", c.name, n), Controller: c.name, Manager: mgr, Log: c.log, Watch: ctrl.Watch, Event: c.sourceEvent,
			Namespaces: c.terms.Namespaces, Passes: func(ended func(types.NamespacedName)) { c.onEnd = append(c.onEnd, ended) },
		}
		if err := s.Attach(target); err != nil {
			return fmt.Errorf("set up controller %s: %w", c.name, err)
		}
	}
	if err := mgr.Add(runnable.AtOnce(c.begin)); err != nil {
		return fmt.Errorf("set up controller %s: %w", c.name, err)
	}
	return nil
}

// wire takes from mgr what passes need.
func (c *Controller[T]) wire(mgr manager.Manager) error {
	c.scheme = mgr.GetScheme()
	gvk, err := c.GroupVersionKind(c.scheme)
	if err != nil {
		return unregistered("the controller's kind", err)
	}
	c.gvk = gvk
	if c.name, err = c.Name(c.scheme); err != nil {
		return err
	}
	if err := c.check(c.name); err != nil {
		return err
	}
	for _, s := range c.options.Sources {
		for _, obj := range s.Watches() {
			if _, err := apiutil.GVKForObject(obj, c.scheme); err != nil {
				return fmt.Errorf("set up controller %s: %w", c.name, unregistered("a kind that a source watches", err))
			}
		}
	}
	if err = c.nameFinalizer(mgr.GetRESTMapper()); err != nil {
		return err
	}
	c.client, c.live = mgr.GetClient(), mgr.GetAPIReader()
	c.leader, _ = mgr.(Leader)
	c.clientset.make = func() (kubernetes.Interface, error) {
		return kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	}
	if err := c.view(mgr.GetCache()); err != nil {
		return err
	}
	c.events = mgr.GetEventRecorder(c.name)
	c.log = safelog.Logger(mgr.GetLogger()).WithName(logs.Name(c.name))
	c.observe()
	if c.finalizer != "" {
		c.log.Info("objects get a finalizer", "kind", c.gvk.Kind, "finalizer", c.finalizer, "because", c.why())
	}
	return nil
}

func unregistered(what string, err error) error {
	return fmt.Errorf("the scheme lacks %s; add its AddToScheme: %w", what, err)
}

// observe decides whether the loop sets status.observedGeneration of the kind.
func (c *Controller[T]) observe() {
	if _, common := reporting(cached.New[T]()); common || c.options.Generation != ObservedGeneration {
		return
	}
	if c.observes = c.fields.observed != nil; !c.observes {
		c.log.Info("the kind has no status.observedGeneration; changes of the generation are seen while the operator runs", "kind", c.gvk.Kind)
	}
}

// Longest returns the object whose pass has been running for the longest time, and when that pass began.
// The time is zero if no pass is running. A health check compares it with a limit.
func (c *Controller[T]) Longest() (types.NamespacedName, time.Time) { return c.memory.longest() }

// check returns every problem of the reconciler and of the options at once.
func (c *Controller[T]) check(name string) error {
	known := capability.Interfaces{
		Required: reflect.TypeFor[Reconciler[T]](),
		Optional: []reflect.Type{
			reflect.TypeFor[Cleaner[T]](), reflect.TypeFor[ErrorHandler[T]](), reflect.TypeFor[Preparer[T]](),
			reflect.TypeFor[Selector[T]](), reflect.TypeFor[Indexer[T]](), reflect.TypeFor[Decorator[T]](),
		},
	}
	author, err := c.author, c.options.Problem
	if w, ok := author.(Decorator[T]); ok {
		if author = w.Unwrap(); isWrapped[T](author) {
			err = errors.Join(err, errors.New("a reconciler of loop.Wrap gets no loop.Run, which it needs here, for example to apply children; "+
				"give it to loop.New, or write it as a loop.Reconciler"))
		}
	}
	if author != nil {
		err = errors.Join(err, known.Check(author))
	}
	if err != nil {
		return fmt.Errorf("controller %s: %w", name, err)
	}
	if err := errors.Join(c.checkRevision(), c.checkFinalizer()); err != nil {
		return fmt.Errorf("options of controller %s: %w", name, err)
	}
	return c.options.check(name)
}

func (o Options[T]) check(name string) error {
	var problems []error
	if o.Finalizer != "" && !strings.ContainsAny(o.Finalizer, "/.") {
		problems = append(problems, fmt.Errorf("finalizer %q needs a domain, for example example.org/%s", o.Finalizer, o.Finalizer))
	}
	if o.Deadline < 0 {
		problems = append(problems, fmt.Errorf("deadline %s is negative; leave it zero for 2 minutes", o.Deadline))
	}
	if o.Workers < 0 {
		problems = append(problems, fmt.Errorf("%d workers are too few; leave it zero for 4", o.Workers))
	}
	if o.Retry.Initial < 0 || o.Retry.Max < 0 {
		problems = append(problems, fmt.Errorf("retry delays from %s to %s cannot be negative; leave them zero for 1 second and 10 minutes", o.Retry.Initial, o.Retry.Max))
	}
	if o.Retry.Multiplier < 0 || (o.Retry.Multiplier > 0 && o.Retry.Multiplier < 1) {
		problems = append(problems, fmt.Errorf("retry multiplier %g would shrink delays; use 1 or more", o.Retry.Multiplier))
	}
	if l := o.RateLimit; l.Passes < 0 || l.Per < 0 || (l.Passes > 0) != (l.Per > 0) {
		problems = append(problems, fmt.Errorf("a rate limit of %d passes per %s is none; set both, or leave both zero for no limit", l.Passes, l.Per))
	}
	for n, s := range o.Sources {
		if v := reflect.ValueOf(s); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			problems = append(problems, fmt.Errorf("source %d of Options.Sources is nil; leave it out", n))
		} else if err := s.Check(); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("options of controller %s: %w", name, err)
	}
	return nil
}

func (o Options[T]) workers() int {
	if o.Workers <= 0 {
		return 4
	}
	return o.Workers
}

func (o Options[T]) deadline() time.Duration {
	if o.Deadline <= 0 {
		return 2 * time.Minute
	}
	return o.Deadline
}

// maxInterval is the longest time until the next pass over an object, spread by a tenth; zero means
// that there is no limit.
func (o Options[T]) maxInterval(key types.NamespacedName) time.Duration {
	interval := o.MaxInterval
	if interval < 0 {
		return 0
	}
	if interval == 0 {
		interval = 10 * time.Hour
	}
	return spread.Around(interval, key)
}

// reporting returns the common status of an object, which the loop writes if its kind has one.
func reporting(obj client.Object) (*api.Status, bool) { return api.StatusOf(obj) }

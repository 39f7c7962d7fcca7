package loop

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/conditions"
)

// Standalone is a pass without a controller. Tests of a [Reconciler] use it through package looptest.
type Standalone[T client.Object] struct {
	// Run is passed to the author's methods.
	Run *Run[T]
}

// StandaloneOptions determine what the Run of a [Standalone] pass returns.
type StandaloneOptions[T client.Object] struct {
	// Client is [Run.Client]; [Run.Persist] writes through it. Required.
	Client client.Client
	// Live is [Run.Live]. Nil means Client.
	Live client.Reader
	// Events receives what [Run.Event] records. Required.
	Events events.EventRecorder
	// Log is [Run.Log]. The zero value logs nothing.
	Log logr.Logger
	// Terms are [Run.Terms], Retry is [Run.Retry].
	Terms Terms
	Retry RetryInfo
	// Vanished is [Run.Vanished].
	Vanished bool
	// Sharing maps keys to the objects that [Run.Sharing] returns.
	Sharing map[string][]T
}

// NewStandalone returns a pass over a copy of obj.
func NewStandalone[T client.Object](obj T, o StandaloneOptions[T]) *Standalone[T] {
	c := &Controller[T]{
		memory: newMemory(), name: "standalone", scheme: o.Client.Scheme(), client: o.Client, live: o.Live,
		events: o.Events, terms: o.Terms,
		sharers: func(_ context.Context, key string) ([]T, error) { return o.Sharing[key], nil },
	}
	if c.live == nil {
		c.live = o.Client
	}
	c.gvk, _ = apiutil.GVKForObject(obj, c.scheme) // names the object in the log and in the trace
	p := c.passOver(obj, o.Retry, o.Log)
	if o.Vanished {
		p.vanished = &vanished{last: obj}
	}
	return &Standalone[T]{Run: &p.run}
}

// Report returns what the status would say after Reconcile returned o.
func (s *Standalone[T]) Report(o Outcome) conditions.Report {
	return s.report(verdictOf(o, o.failed() && s.Run.Retry().Last, s.Run.Retry()))
}

// ReportCleanup returns what the status would say after Cleanup returned o.
func (s *Standalone[T]) ReportCleanup(o CleanupOutcome) conditions.Report {
	return s.report(verdictOfCleanup(o))
}

// report leaves the author's conditions as they are.
func (s *Standalone[T]) report(v verdict) conditions.Report {
	p := s.Run.pass
	authors := p.conditions
	defer func() { p.conditions = authors }()
	p.conditions = conditions.Set{}
	for _, c := range authors.All() {
		p.conditions.Put(c)
	}
	return p.report(v)
}

// QueueMaker is implemented by a manager that makes the queues of its controllers, so that it decides when a pass runs.
// Tests have one through package looptest.
type QueueMaker interface {
	NewQueue(name string, delays workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Leader is implemented by a manager that knows whether its process leads, or has lost its lease. No pass begins while it
// does not lead.
type Leader interface {
	Leads() bool
}

// queueOf returns what makes the queue of a controller, or nil for the usual one.
func queueOf(mgr manager.Manager) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	if m, ok := mgr.(QueueMaker); ok {
		return m.NewQueue
	}
	return nil
}

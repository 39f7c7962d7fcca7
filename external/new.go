package external

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/internal/capability"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// New makes the controller of one kind of external resource. It detects the optional interfaces of
// d by its methods; a method that would never be called makes SetupWithManager fail: one with the
// right name and another signature, one with a misspelt name, and any other exported method that takes
// one of this package's requests.
// New panics if d is nil, if options are missing or exclude each other, or if [Options.MarkLater] is
// set and d is no [Marker].
func New[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) *loop.Controller[T] {
	e := newEngine(d, o)
	options := o.Loop
	if options.MaxInterval == 0 && e.DriftInterval() > 0 {
		options.MaxInterval = e.DriftInterval()
	}
	options.Sources = slices.Clone(options.Sources)
	for _, k := range e.Dependencies() {
		options.Sources = append(options.Sources, trigger.Reference[T]{
			To: k.To, Names: func(obj T) []types.NamespacedName { return k.Names(obj) }, Changed: k.Changed,
		})
	}
	options.Sources = append(options.Sources, trigger.External[T]{Waker: e.Waker()})
	sources, needs := logins[T](e)
	options.Sources = append(options.Sources, sources...)
	outputs := e.OutputKind()
	if outputs != nil {
		options.Sources = append(options.Sources, trigger.Reference[T]{To: outputs.To, Names: func(obj T) []types.NamespacedName { return outputs.Names(obj) }})
	}
	options.Needs = slices.Concat(options.Needs, e.Needs(), needs, e.OutputNeeds(outputs))
	options.PlainClient = true
	if options.Generation == loop.GenerationAware {
		options.Generation = loop.SpecOnly
	}
	options.Problem = errors.Join(options.Problem, e.Problem(), misfits[T, C, O](d))
	return loop.New(reconciler[T]{e}, options)
}

// NewReconciler returns what the controller that [New] returns calls for each object. It is for tests of a driver with package
// looptest, without an API server, and with a client of the external API that is a fake: Options.Connect returns it. The
// client of the cluster must hold the object and the namespace kube-system, by whose UID marks name the cluster.
//
// Options.Loop has no effect, and nothing wakes objects.
func NewReconciler[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) loop.Reconciler[T] {
	return reconciler[T]{newEngine(d, o)}
}

// misfits are the methods of a driver that would never be called.
func misfits[T Object, C, O any](d Driver[T, C, O]) error {
	return capability.Interfaces{
		Required: reflect.TypeFor[Driver[T, C, O]](),
		Optional: []reflect.Type{
			reflect.TypeFor[Updater[T, C, O]](), reflect.TypeFor[Marker[T, C]](), reflect.TypeFor[Unmarker[T, C]](), reflect.TypeFor[Finder[T, C]](),
			reflect.TypeFor[Poller[T, C, O]](), reflect.TypeFor[Canceler[T, C]](),
			reflect.TypeFor[Namer[T]](), reflect.TypeFor[Reflector[T, O]](), reflect.TypeFor[LateInitializer[T, O]](), reflect.TypeFor[Finisher[T, O]](), reflect.TypeFor[Dependent[T]](), reflect.TypeFor[Connectable[T]](), reflect.TypeFor[Classifier](),
		},
		Requests: true,
	}.Check(d)
}

func newEngine[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) *engine.Engine {
	if d == nil {
		panic("external: New needs a Driver; pass the value that implements Observe, Compare, Create and Delete")
	}
	o.check()
	if _, marks := any(d).(Marker[T, C]); o.MarkLater && (!marks || o.Unmarked) {
		panic("external: Options.MarkLater needs a Driver that is a Marker, and no Options.Unmarked; " +
			"give it Mark(context.Context, MarkRequest[T, C]) (MarkResponse, error) with the T and C of its other methods")
	}
	_, polls := any(d).(Poller[T, C, O])
	if _, cancels := any(d).(Canceler[T, C]); cancels && !polls {
		panic("external: a Driver that is a Canceler must be a Poller, which returns the operations that Cancel is to end; " +
			"give it Poll(context.Context, PollRequest[T, C]) (PollResponse[O], error) with the T, C and O of its other methods")
	}
	return engine.New(untyped(d), o.untyped())
}

// reconciler is the [loop.Reconciler] of a kind: the engine, which does not know its type.
type reconciler[T Object] struct{ engine *engine.Engine }

// AlwaysReturns implements [guard.Returner] for Selects, which calls no driver, and IndexKeys, which
// calls it on a goroutine of its own.
func (r reconciler[T]) AlwaysReturns() {}

// DryRunSafe implements [loop.DryRunner]: the engine calls no method of a driver that changes anything.
func (r reconciler[T]) DryRunSafe() bool { return true }

// Prepare implements [loop.Preparer].
func (r reconciler[T]) Prepare(ctx context.Context, run *loop.Run[T]) error {
	return r.engine.Prepare(ctx, untypedRun[T]{run})
}

// Reconcile implements [loop.Reconciler].
func (r reconciler[T]) Reconcile(ctx context.Context, run *loop.Run[T]) loop.Outcome {
	return r.engine.Reconcile(ctx, untypedRun[T]{run})
}

// Cleanup implements [loop.Cleaner].
func (r reconciler[T]) Cleanup(ctx context.Context, run *loop.Run[T]) loop.CleanupOutcome {
	return r.engine.Cleanup(ctx, untypedRun[T]{run})
}

// Selects implements [loop.Selector].
func (r reconciler[T]) Selects(ctx context.Context, run *loop.Run[T]) bool {
	return r.engine.Selects(ctx, untypedRun[T]{run})
}

// IndexKeys implements [loop.Indexer].
func (r reconciler[T]) IndexKeys(obj T) []string { return r.engine.IndexKeys(obj) }

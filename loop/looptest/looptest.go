package looptest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/loop"
)

// Options describe the surroundings of a pass. The zero value suits a Reconciler that needs only its
// object.
type Options[T client.Object] struct {
	// Client is returned by the Run's Client and Live. Nil means a fake client that contains only the
	// object, so that Persist works.
	Client client.Client
	// Log is the Run's logger. The zero value logs nothing.
	Log logr.Logger
	// Terms are the operator's settings, as Run.Terms returns them.
	Terms loop.Terms
	// Retry says which retry the pass is. The zero value is the first attempt.
	Retry loop.RetryInfo
	// Vanished means that the object no longer exists; see Run.Vanished.
	Vanished bool
	// Sharing maps keys to the objects that the Run's Sharing returns.
	Sharing map[string][]T
}

// Pass is a pass over one object in a test.
type Pass[T client.Object] struct {
	// Run is passed to Reconcile, Cleanup and the other methods of the Reconciler.
	Run *loop.Run[T]

	pass   *loop.Standalone[T]
	events recorder
}

// NewPass returns a pass over a copy of obj.
func NewPass[T client.Object](obj T, o Options[T]) *Pass[T] {
	if o.Client == nil {
		o.Client = holding(obj)
	}
	p := &Pass[T]{}
	p.pass = loop.NewStandalone(obj, loop.StandaloneOptions[T]{
		Client: o.Client, Events: &p.events, Log: o.Log, Terms: o.Terms, Retry: o.Retry, Vanished: o.Vanished, Sharing: o.Sharing,
	})
	p.Run = p.pass.Run
	return p
}

// holding returns a client that knows the kind of obj and no other, and holds obj.
func holding(obj client.Object) client.Client {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{
		Group: "looptest.trimtab.dev", Version: "v1", Kind: reflect.TypeOf(obj).Elem().Name(),
	}, obj)
	held, _ := obj.DeepCopyObject().(client.Object)
	held.SetResourceVersion("")
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(held).Build()
}

// Report returns what the object's status would say after Reconcile returned o: state, message,
// conditions, and the event about it.
func (p *Pass[T]) Report(o loop.Outcome) conditions.Report { return p.pass.Report(o) }

// ReportCleanup is like Report, but for the outcome of Cleanup.
func (p *Pass[T]) ReportCleanup(o loop.CleanupOutcome) conditions.Report {
	return p.pass.ReportCleanup(o)
}

// Events returns the events that were recorded by the Run's Event so far.
func (p *Pass[T]) Events() []conditions.Event { return p.events.all() }

// recorder keeps events.
type recorder struct {
	mu   sync.Mutex
	kept []conditions.Event
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := conditions.Event{Reason: reason, Note: fmt.Sprintf(note, args...)}
	e.Warning = kind != e.Type()
	r.kept = append(r.kept, e)
}

func (r *recorder) all() []conditions.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}

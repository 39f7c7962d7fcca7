package loop

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/conditions"
)

// Run is one pass over one object.
type Run[T client.Object] struct {
	// Obj is the object: a private copy, to be changed at will within what
	// [Reconciler.Reconcile] allows. Its managedFields are left out.
	Obj T

	client     client.Client
	live       client.Reader
	terms      Terms
	sharing    func(ctx context.Context, key string) ([]T, error)
	conditions *conditions.Set
	retry      RetryInfo
	log        logr.Logger
	stateSet   bool
	reported   *conditions.Report
	vanished   bool
	setState   func(state, reason, message string)
	persist    func(context.Context) error
	event      func(kind, reason, note string)
}

func newRun[T client.Object](p *pass[T], retry RetryInfo, log logr.Logger) *Run[T] {
	return &Run[T]{
		client: p.c.client, live: p.c.live, conditions: &conditions.Set{}, retry: retry, log: log,
		setState: p.setState, persist: p.persist, event: p.event, terms: p.c.terms, sharing: p.c.sharing,
	}
}

// Client reads from the cache and writes to the API.
func (r *Run[T]) Client() client.Client { return r.client }

// Live reads from the API server itself, past the cache: one request for each read. It is
// for the rare moment in which a copy that lags behind would do harm.
func (r *Run[T]) Live() client.Reader { return r.live }

// Terms are what the one who runs the operator decided.
func (r *Run[T]) Terms() Terms { return r.terms }

// Sharing returns the objects in the cache for which [Indexer.IndexKeys] gives key, this one
// among them. They are the cache's own: nothing of them may be changed.
func (r *Run[T]) Sharing(ctx context.Context, key string) ([]T, error) { return r.sharing(ctx, key) }

// Vanished tells that the object is gone already: a deletion that was under way when its
// finalizer was written removed it past that, and Cleanup works from the last version. Nothing
// can be written to it, so [Run.Persist] does nothing; an object of the same name may live.
func (r *Run[T]) Vanished() bool { return r.vanished }

// Retry tells where in the ladder of retries this pass stands.
func (r *Run[T]) Retry() RetryInfo { return r.retry }

// Conditions are the object's conditions as this pass will report them. The set starts
// empty: of trimtab's own types, what is not set again goes. Ready, Reconciling and
// Stalled are filled in from the outcome if the author leaves them open.
func (r *Run[T]) Conditions() *conditions.Set { return r.conditions }

// Log is the pass's logger; it carries the object's identity.
func (r *Run[T]) Log() logr.Logger { return r.log }

// SetState sets the one word that status.state shows. Each change within a pass is a
// transition in the trace, where reason and message explain it; the last one is written.
// Both may be empty.
func (r *Run[T]) SetState(state, reason, message string) {
	r.stateSet = true
	r.setState(state, reason, message)
}

// Report says all that people are to be told of the object: state, message, conditions,
// event. Of what the pass says otherwise, by its outcome, by [Run.Conditions] or by
// [Run.SetState], nothing is shown then. The last report counts.
func (r *Run[T]) Report(report conditions.Report) { r.reported = &report }

// Event records a Kubernetes event about the object: kind is Normal or Warning, reason is
// CamelCase. Transitions of what status says record theirs without being asked.
func (r *Run[T]) Event(kind, reason, note string) { r.event(kind, reason, note) }

// Persist makes changes of annotations and labels durable now instead of at the end of
// the pass: what is needed to find a thing again must be recorded before the thing is
// made. If the object changed meanwhile the error is [Outdated]: return it in [Fail].
func (r *Run[T]) Persist(ctx context.Context) error { return r.persist(ctx) }

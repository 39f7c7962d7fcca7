package loop

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/conditions"
)

// Run is what an author holds of one pass over one object.
type Run[T client.Object] struct {
	// Obj is the object: a private copy, to be changed at will within what
	// [Reconciler.Reconcile] allows. Its managedFields are left out.
	Obj T

	pass *pass[T]
}

// Client reads from the cache and writes to the API.
func (r *Run[T]) Client() client.Client { return r.pass.c.client }

// Live reads from the API server and bypasses the cache. Each read is a request. It is for the rare
// case in which acting on a stale copy would do harm.
func (r *Run[T]) Live() client.Reader { return r.pass.c.live }

// Terms returns the operator's settings.
func (r *Run[T]) Terms() Terms { return r.pass.c.terms }

// Sharing returns the objects in the cache for which [Indexer.IndexKeys] returns key, including this
// one. They belong to the cache and must not be changed.
func (r *Run[T]) Sharing(ctx context.Context, key string) ([]T, error) {
	return r.pass.c.sharing(ctx, key)
}

// Vanished reports whether the object no longer exists: a deletion that was in progress when the
// finalizer was written removed it nevertheless, and Cleanup gets its last version. Nothing can be
// written to it, so [Run.Persist] does nothing. Another object of the same name may exist.
func (r *Run[T]) Vanished() bool { return r.pass.vanished != nil }

// Retry returns which retry this pass is.
func (r *Run[T]) Retry() RetryInfo { return r.pass.retry }

// Conditions returns the conditions that this pass will report. The set starts empty, and conditions
// of trimtab's own types that are not set in it are removed from the object. Ready, Reconciling and
// Stalled follow from the outcome unless they are set here.
func (r *Run[T]) Conditions() *conditions.Set { return &r.pass.conditions }

// Log is the pass's logger; it carries the object's identity.
func (r *Run[T]) Log() logr.Logger { return r.pass.log }

// SetState sets the one word that status.state shows. Each change within a pass is a
// transition in the trace, where reason and message explain it; the last one is written.
// Both may be empty.
func (r *Run[T]) SetState(state, reason, message string) {
	r.pass.stateSet = true
	r.pass.setState(state, reason, message)
}

// Report replaces all that status shows of the object: state, message, conditions, event. What
// the pass says otherwise, by its outcome, by [Run.Conditions] or by [Run.SetState], is not
// shown then. The last report counts.
func (r *Run[T]) Report(report conditions.Report) { r.pass.reported = &report }

// Event records a Kubernetes event about the object: kind is Normal or Warning, reason is
// CamelCase. Transitions of the status record events without this.
func (r *Run[T]) Event(kind, reason, note string) { r.pass.event(kind, reason, note) }

// Persist makes changes of annotations and labels durable now instead of at the end of
// the pass: what is needed to find an external resource again must be recorded before the
// resource is created. If the object changed meanwhile the error is [Outdated]: return it in
// [Fail].
func (r *Run[T]) Persist(ctx context.Context) error { return r.pass.persist(ctx) }

package loop

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/conditions"
)

// Run gives the author's code access to a pass over an object.
type Run[T client.Object] struct {
	// Obj is a private copy of the object without managedFields. [Reconciler.Reconcile] says what may
	// be changed.
	Obj T

	pass *pass[T]
}

// Client returns a client that reads from the cache and writes to the API server. A read never returns anything older
// than what was written through it for this object: where the cache lags, Get returns the answer to the write or reads live, and
// List waits for up to 100 ms and then reads live. The next pass begins when the cache shows what was written, or after
// 5 s; then the kinds that lag are read live in it, for which the operator needs the permission to get them. This does not hold for what others wrote, nor for writes before a restart.
// A list by an index of the cache cannot be read live: its error is [Outdated], return it in [Fail].
func (r *Run[T]) Client() client.Client {
	if r.pass.client != nil {
		return r.pass.client
	}
	return r.pass.c.client
}

// Live returns a reader that bypasses the cache. Each read is a request to the API server. It is for the
// rare case in which acting on a stale copy would do harm.
func (r *Run[T]) Live() client.Reader { return r.pass.c.live }

// Clientset returns a clientset of client-go, for what [Run.Client] cannot do, such as reading the log of a Pod. why says
// what that is, and is logged when the controller first gives it. Nothing that is read through a clientset comes from the
// cache, and the permissions must be listed in [Options.Needs]. The error is that of making it. A [Standalone] pass has none.
func (r *Run[T]) Clientset(why string) (kubernetes.Interface, error) {
	return r.pass.c.clientset.get(r.pass.log, why)
}

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
func (r *Run[T]) Retry() RetryInfo { return r.pass.info }

// Conditions returns the conditions that this pass will report. The set starts empty, and conditions
// of trimtab's own types that are not set in it are removed from the object. Ready, Reconciling and
// Stalled follow from the outcome unless they are set here.
func (r *Run[T]) Conditions() *conditions.Set { return &r.pass.conditions }

// Log returns the logger of the pass, with the identity of the object.
func (r *Run[T]) Log() logr.Logger { return r.pass.log }

// SetState sets status.state, a single word. Each change during a pass is a transition in the trace, with
// reason and message as its explanation, which may be empty. The last state is written.
func (r *Run[T]) SetState(state, reason, message string) {
	r.pass.stateSet = true
	r.pass.setState(state, reason, message)
}

// Report sets everything that the status shows: state, message, conditions and event. It replaces what
// would follow from the outcome, [Run.Conditions] and [Run.SetState]. The last report counts.
func (r *Run[T]) Report(report conditions.Report) { r.pass.reported = &report }

// Event records a Kubernetes event about the object. kind is Normal or Warning, reason a CamelCase word.
// The loop records events for transitions of the status by itself.
func (r *Run[T]) Event(kind, reason, note string) { r.pass.event(kind, reason, note) }

// Certain makes sure that r.Obj is not outdated, because the cache of a process that has just started may lag
// behind. Call it before an effect that would do harm for an outdated object. If the object is outdated, the
// error is [Outdated]: return it in [Fail]. Certain reads the object from the API server, unless the process has
// done so before or has written the object.
func (r *Run[T]) Certain(ctx context.Context) error { return r.pass.certain(ctx) }

// Persist writes changes of annotations and labels now instead of at the end of the pass: what is needed
// to find an external resource again must be stored before the resource is created. If the object has
// changed in the meantime, the error is [Outdated]: return it in [Fail].
func (r *Run[T]) Persist(ctx context.Context) error { return r.pass.persist(ctx) }

// CompleteSpec adds fields to the spec, with the changes of annotations of r.Obj, in one write now. r.Obj is then the object
// as the API server has it, with its new generation. It is for fields that the user left unset and whose value was chosen
// elsewhere, on objects whose users ask for that: no pass may change the spec otherwise. If the object has changed in the
// meantime, the error is [Outdated]: return it in [Fail].
func (r *Run[T]) CompleteSpec(ctx context.Context, fields map[string]any) error {
	return r.pass.completeSpec(ctx, fields)
}

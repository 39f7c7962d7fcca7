package loop

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler brings the world to what an object asks for.
type Reconciler[T client.Object] interface {
	// Reconcile is called with the newest object the cache holds, its finalizer in place,
	// never for an object marked for deletion, and never twice at a time for one object.
	// It must be safe to repeat from any point. A panic, runtime.Goexit and a passed deadline
	// count as failures. Changes to r.Obj's status, labels and annotations are committed after it
	// returns; a change to its spec is a programming error and nothing is written then.
	Reconcile(ctx context.Context, r *Run[T]) Outcome
}

// Cleaner is implemented by a [Reconciler] that must undo something before an object
// goes. Having it is what makes the loop put a finalizer on objects.
type Cleaner[T client.Object] interface {
	// Cleanup is called instead of Reconcile from the deletion mark on, until it answers
	// [Removed]. Safe to repeat; what it undoes may be gone already, and so may the object:
	// see [Run.Vanished].
	Cleanup(ctx context.Context, r *Run[T]) CleanupOutcome
}

// ErrorHandler is implemented by a [Reconciler] that wants to see failures of Reconcile
// (not of Cleanup), for example to note them in status.
type ErrorHandler[T client.Object] interface {
	// OnError is called once per failed pass, the first with attempt 0. Of what it
	// changes in r.Obj only status is written.
	OnError(ctx context.Context, r *Run[T], err error) ErrorOutcome
}

// Preparer is implemented by a [Reconciler] that must have annotations on an object in
// the very write that adds the finalizer, so that both are durable at once and at the
// price of one request.
type Preparer[T client.Object] interface {
	// Prepare changes annotations of r.Obj, nothing else. Called before the finalizer is
	// added; an error fails the pass with nothing written.
	Prepare(ctx context.Context, r *Run[T]) error
}

// Selector is implemented by a [Reconciler] that shares its kind with others in the cluster.
type Selector[T client.Object] interface {
	// Selects tells whether r.Obj is this reconciler's. An object that is not is left
	// entirely alone: no finalizer, no status, no event. Called at the start of each visit;
	// nothing of r is to be changed.
	Selects(ctx context.Context, r *Run[T]) bool
}

// Indexer is a [Reconciler] whose objects compete for something, for example a name.
type Indexer[T client.Object] interface {
	// IndexKeys are what obj stands for. Pure, and cheap: it is called for every change of
	// obj. [Run.Sharing] finds the objects that share a key, and when one of them goes, or
	// lets go of a key, those that share it are visited.
	IndexKeys(obj T) []string
}

// Outdated is the error of a pass that noticed that it works on an old copy of its object.
// Returned in [Fail] or [CleanupFailed] it repeats the pass with a fresh one at once, which
// is no failure and uses up no attempt. [Run.Persist] returns it after a conflict.
func Outdated(why error) error { return outdatedError{why} }

type outdatedError struct{ error }

func (e outdatedError) Unwrap() error { return e.error }

func isOutdated(err error) bool {
	_, is := errors.AsType[outdatedError](err)
	return is
}

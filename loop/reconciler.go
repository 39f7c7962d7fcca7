package loop

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler brings the actual state to what an object's spec asks for.
type Reconciler[T client.Object] interface {
	// Reconcile is called with the newest object that the cache holds, once its finalizer is on,
	// never for an object that is being deleted, and never twice at a time for one object. It
	// must be safe to repeat from any point. A panic, runtime.Goexit and an exceeded deadline
	// are failures. Changes to the status, labels and annotations of r.Obj are written after it
	// returns. A change to its spec is a programming error: then nothing is written.
	Reconcile(ctx context.Context, r *Run[T]) Outcome
}

// Cleaner is implemented by a [Reconciler] that must clean something up before an object is deleted.
// The loop puts a finalizer on objects if the Reconciler implements it.
type Cleaner[T client.Object] interface {
	// Cleanup is called instead of Reconcile once the object is being deleted, until it returns
	// [CleanedUp]. It must be safe to repeat: what it cleans up may be gone already, and so may
	// the object, see [Run.Vanished].
	Cleanup(ctx context.Context, r *Run[T]) CleanupOutcome
}

// ErrorHandler is implemented by a [Reconciler] that handles failures of Reconcile (not of Cleanup),
// for example to show them in status.
type ErrorHandler[T client.Object] interface {
	// OnError is called once per failed pass, first with attempt 0. Of its changes to r.Obj only
	// those of the status are written.
	OnError(ctx context.Context, r *Run[T], err error) ErrorOutcome
}

// Preparer is implemented by a [Reconciler] that needs annotations on an object in the same write that
// adds the finalizer, so that one request makes both durable.
type Preparer[T client.Object] interface {
	// Prepare changes annotations of r.Obj and nothing else. It is called before the finalizer is
	// added. If it returns an error the pass fails and neither is written.
	Prepare(ctx context.Context, r *Run[T]) error
}

// Selector is implemented by a [Reconciler] that shares its kind with other controllers in the cluster.
type Selector[T client.Object] interface {
	// Selects reports whether r.Obj belongs to this Reconciler. Any other object is left alone: it
	// gets no finalizer, no status and no event. Selects is called at the start of each pass and
	// must not change r.
	Selects(ctx context.Context, r *Run[T]) bool
}

// Indexer is implemented by a [Reconciler] whose objects compete for something, for example a name.
type Indexer[T client.Object] interface {
	// IndexKeys returns what obj competes for. It must depend on obj alone and return at once: it is
	// called for every version of obj. [Run.Sharing] returns the objects that share a key. When one
	// of them is deleted or no longer has the key, the others are reconciled.
	IndexKeys(obj T) []string
}

// Outdated returns the error of a pass that works on an outdated copy of its object. In [Fail] or
// [CleanupFailed] it repeats the pass at once with a fresh copy, which is not a failure and uses no
// attempt. [Run.Persist] returns it after a conflict.
func Outdated(why error) error { return outdatedError{why} }

type outdatedError struct{ error }

func (e outdatedError) Unwrap() error { return e.error }

func isOutdated(err error) bool {
	_, is := errors.AsType[outdatedError](err)
	return is
}

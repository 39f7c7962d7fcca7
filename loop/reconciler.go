package loop

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reconciler makes the actual state match the spec of an object.
type Reconciler[T client.Object] interface {
	// Reconcile is called with the newest version of the object in the cache after its finalizer has
	// been added. It is not called for an object that is being deleted, and never concurrently for the
	// same object. It must be safe to repeat from any point. A panic, runtime.Goexit and an exceeded
	// deadline are failures. Changes to the status, labels and annotations of r.Obj are written after it
	// returns. A change to the spec is a programming error, and nothing is written.
	Reconcile(ctx context.Context, r *Run[T]) Outcome
}

// Cleaner is implemented by a [Reconciler] that must clean something up before an object is deleted.
// If the Reconciler implements it, the loop adds a finalizer to objects.
type Cleaner[T client.Object] interface {
	// Cleanup is called instead of Reconcile when the object is being deleted, until it returns
	// [CleanedUp]. It must be safe to repeat: what it cleans up may already be gone, and so may the
	// object; see [Run.Vanished].
	Cleanup(ctx context.Context, r *Run[T]) CleanupOutcome
}

// ErrorHandler is implemented by a [Reconciler] that handles failures of Reconcile (not of Cleanup),
// for example to show them in the status.
type ErrorHandler[T client.Object] interface {
	// OnError is called once per failed pass; [Run.Retry] says which retry the pass was. Changes
	// that it makes to r.Obj are written only if they are in the status. [ErrorOutcome.WithoutStatus] keeps a failure out of it.
	OnError(ctx context.Context, r *Run[T], err error) ErrorOutcome
}

// Preparer is implemented by a [Reconciler] that needs annotations on an object before the first
// Reconcile. One request writes them together with the finalizer.
type Preparer[T client.Object] interface {
	// Prepare changes annotations of r.Obj and nothing else. It is called before the finalizer is
	// added. If it returns an error, the pass fails and neither is written.
	Prepare(ctx context.Context, r *Run[T]) error
}

// Selector is implemented by a [Reconciler] that shares its kind with other controllers in the cluster.
type Selector[T client.Object] interface {
	// Selects reports whether r.Obj belongs to this Reconciler. Any other object is left alone: it
	// gets no finalizer, no status and no event. Selects is called at the start of each pass and
	// must not change r.
	Selects(ctx context.Context, r *Run[T]) bool
}

// Indexer is implemented by a [Reconciler] whose objects compete for something, such as a name.
type Indexer[T client.Object] interface {
	// IndexKeys returns the keys that obj competes for, such as a name. It must depend only on obj and
	// return quickly, because it is called for every version of obj. [Run.Sharing] returns the objects that share a key. When one
	// of them is deleted or no longer has the key, the others are reconciled.
	IndexKeys(obj T) []string
}

// Decorator is implemented by a [Reconciler] that adds something to another one, as package children does. Its
// Cleanup is called only if objects have the finalizer.
type Decorator[T client.Object] interface {
	Cleaner[T]
	// Unwrap returns the other one, or nil. Optional interfaces that the Decorator does not implement are looked for
	// there.
	Unwrap() Reconciler[T]
	// Finalizer returns the finalizer of objects of kind gvk, unless [Options.Finalizer] names one, and why they need
	// it, as the end of a sentence: "because ...". Without a reason they do not need it, and it is removed from objects
	// that have it from an earlier version of the operator, after Release.
	Finalizer(gvk schema.GroupVersionKind) (name, why string)
	// Release gives up what an earlier version of the operator had to clean up for r.Obj, which may be being deleted, and
	// reports whether nothing of it is left. It is called at the beginning of each pass over an object that has a
	// finalizer which it does not need; until done is true, the object keeps it. An error is retried.
	Release(ctx context.Context, r *Run[T]) (done bool, err error)
}

// as returns the author of a controller, or whom it wraps, as a value with an optional interface.
func as[I any, T client.Object](r Reconciler[T]) (found I, ok bool) {
	for r != nil {
		if found, ok = r.(I); ok {
			return found, true
		}
		w, is := r.(Decorator[T])
		if !is {
			break
		}
		r = w.Unwrap()
	}
	return found, false
}

// Outdated returns the error of a pass whose copy of the object is outdated. If [Fail] or
// [CleanupFailed] gets it, the pass is repeated immediately with a newer copy, which is not a failure
// and does not count as a retry. [Run.Persist] returns it after a conflict.
func Outdated(why error) error { return outdatedError{why} }

type outdatedError struct{ error }

func (e outdatedError) Unwrap() error { return e.error }

func isOutdated(err error) bool {
	_, is := errors.AsType[outdatedError](err)
	return is
}

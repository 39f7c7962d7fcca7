package loop

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/status"
)

// Run is one pass over one object.
type Run[T client.Object] struct {
	// Obj is the object: a private copy, to be changed at will within what
	// [Reconciler.Reconcile] allows.
	Obj T

	// unexported fields follow in the implementation
	client     client.Client
	conditions *status.Set
	retry      RetryInfo
	log        logr.Logger
	persist    func(context.Context) error
	setState   func(string)
}

// Client reads from the cache and writes to the API.
func (r *Run[T]) Client() client.Client { return r.client }

// Retry tells where in the ladder of retries this pass stands.
func (r *Run[T]) Retry() RetryInfo { return r.retry }

// Conditions are the object's conditions as this pass will report them. It starts empty:
// what is not set again goes, but for conditions that others wrote.
func (r *Run[T]) Conditions() *status.Set { return r.conditions }

// Log is the pass's logger; it carries the object's identity.
func (r *Run[T]) Log() logr.Logger { return r.log }

// SetState sets the one word that status.state shows.
func (r *Run[T]) SetState(s string) { r.setState(s) }

// Persist makes changes of annotations and labels durable now instead of at the end of
// the pass: what is needed to find a thing again must be recorded before the thing is
// made. It fails with a conflict if the object changed meanwhile; return [Fail] with that
// error and the pass is repeated with the fresh object, which uses up no attempt.
func (r *Run[T]) Persist(ctx context.Context) error { return r.persist(ctx) }

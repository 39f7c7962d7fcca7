package component

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Component is an [Object] whose spec is parameters of a [Generator].
type Component interface {
	client.Object
	// GetSpec returns the parameters for the generator, usually the spec. They are never modified.
	GetSpec() Unstructurable
	// GetStatus returns the object's status for reading and writing. It must not return nil.
	GetStatus() *Status
}

// Unstructurable is [api.Unstructurable].
type Unstructurable = api.Unstructurable

// Generator returns the dependents of components.
type Generator interface {
	// Generate returns the dependents, typed or unstructured. The namespace is where those go that
	// name none, and name is what to name them after: those of the component, or what its
	// [PlacementConfiguration] says. The parameters are what [Component.GetSpec] returned.
	//
	// Generate is called when one of these changed, or something that the component refers to. It
	// must return the same for the same arguments, change nothing, and not return secrets in its
	// error, which the component's status shows. It may read from the cluster of the dependents, see
	// [ClientFromContext]; then it is called in every pass. A generator whose result depends on
	// something else must be [Versioned].
	Generate(ctx context.Context, namespace, name string, parameters Unstructurable) ([]client.Object, error)
}

// Versioned is implemented by a [Generator] or [Renderer] whose result depends on something besides its
// arguments, such as a file.
type Versioned interface {
	// Version identifies what the result depends on. It is called in every pass.
	Version() string
}

// SchemeBuilder adds types to a scheme. A [Generator] or [Renderer] that implements it may return objects
// of these types.
type SchemeBuilder interface {
	AddToScheme(scheme *runtime.Scheme) error
}

// AdoptionPolicy is [api.AdoptionPolicy], which has its values.
type AdoptionPolicy = api.AdoptionPolicy

// UpdatePolicy is [api.UpdatePolicy], which has its values.
type UpdatePolicy = api.UpdatePolicy

// FromGenerator returns a [Renderer] that calls a generator.
func FromGenerator[T Component](g Generator) Renderer[T] { return generated[T]{around{g}, g} }

// generated is the renderer of a generator.
type generated[T Component] struct {
	around

	generator Generator
}

func (g generated[T]) Render(ctx context.Context, r RenderRequest[T]) (Set, error) {
	objects, err := g.generator.Generate(ctx, r.Namespace, r.Name, r.Component.GetSpec())
	return Objects(objects...), err
}

// RetriableError is an error that is retried after a delay of its own, and not with growing delays. The
// state of the component is Pending until then, not Error. Make one with [NewRetriableError].
type RetriableError struct {
	err        error
	retryAfter *time.Duration
}

// NewRetriableError returns an error for what is to be retried after a delay. Nil means the interval of
// the component's [RetryConfiguration].
func NewRetriableError(err error, retryAfter *time.Duration) RetriableError {
	return RetriableError{err: err, retryAfter: retryAfter}
}

// Error returns the text of the wrapped error.
func (e RetriableError) Error() string {
	if e.err == nil {
		return "something that can be retried failed"
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e RetriableError) Unwrap() error { return e.err }

// RetryAfter returns the delay, which is nil if the component decides.
func (e RetriableError) RetryAfter() *time.Duration { return e.retryAfter }

// retriable finds a RetriableError, also one that is returned as a pointer.
func retriable(err error) (RetriableError, bool) {
	if e, ok := errors.AsType[RetriableError](err); ok {
		return e, true
	}
	if e, ok := errors.AsType[*RetriableError](err); ok && e != nil {
		return *e, true
	}
	return RetriableError{}, false
}

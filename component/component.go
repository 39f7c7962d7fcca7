package component

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Status is the status of a component. Its fields are those of [api.ComponentStatus].
type Status = api.ComponentStatus

// Object is a kind of components.
type Object interface {
	client.Object
	// GetStatus returns the object's status for reading and writing. It must not return nil.
	GetStatus() *Status
}

// Renderer returns the dependents of components.
type Renderer[T Object] interface {
	// Render returns the dependents that a component should have. It must be pure: the result depends only
	// on the request. If it returns an error, nothing is changed. The error is shown in the component's
	// status, so it must not contain secrets.
	Render(ctx context.Context, r RenderRequest[T]) (Set, error)
}

// RenderRequest asks for the dependents of a component.
type RenderRequest[T Object] struct {
	// Component is a copy of the component. Changes to it are lost.
	Component T
	// NamespacedName is the default namespace of the dependents and the base of their names.
	types.NamespacedName
}

// RenderFunc is a [Renderer] that is a function.
type RenderFunc[T Object] func(ctx context.Context, r RenderRequest[T]) (Set, error)

// Render implements [Renderer].
func (f RenderFunc[T]) Render(ctx context.Context, r RenderRequest[T]) (Set, error) { return f(ctx, r) }

// States of components. They are those of component-operator-runtime.
const (
	StatePending         = "Pending"
	StateProcessing      = "Processing"
	StateReady           = "Ready"
	StateDeletionPending = "DeletionPending"
	StateDeleting        = "Deleting"
	StateError           = "Error"
)

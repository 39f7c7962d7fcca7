package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/internal/engine"
)

// HookFunc is called at a point of a pass, with the client of the manager and a copy of the component. Later
// hooks and the generator of the same pass see changes of the copy. Only changes of the status are written. An
// error ends the pass like an error of the generator; see [NewRetriableError].
type HookFunc[T Component] func(ctx context.Context, client client.Client, component T) error

// hook is the point of a pass at which hooks are called.
type hook int

const (
	postRead hook = iota
	preReconcile
	postReconcile
	preDelete
	postDelete
	points
)

func (h hook) String() string {
	switch h {
	case postRead:
		return "post-read hook"
	case preReconcile:
		return "pre-reconcile hook"
	case postReconcile:
		return "post-reconcile hook"
	case preDelete:
		return "pre-delete hook"
	case postDelete:
		return "post-delete hook"
	case points:
	}
	return "hook"
}

// hooks are the hooks of a kind of components, in the order of their registration.
type hooks[T Object] [points][]func(ctx context.Context, client client.Client, component T) error

// any reports whether there is a hook at one of these points.
func (h *hooks[T]) any(at ...hook) bool {
	for _, point := range at {
		if len(h[point]) > 0 {
			return true
		}
	}
	return false
}

// call calls the hooks of a point. The first error ends that.
func (h *hooks[T]) call(ctx context.Context, at hook, c client.Client, component T) error {
	for _, f := range h[at] {
		if err := f(ctx, c, component); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// withoutHooks reports whether the component is deleted without its delete hooks: because it says so, or because nothing
// can be recorded any more.
func (p *pass[T]) withoutHooks() bool {
	return p.run.Vanished() || p.obj.GetAnnotations()[engine.WithoutHooksKey(p.options.Name)] == "true"
}

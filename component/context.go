package component

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/component/internal/engine"
)

// contextKey is the key of the pass in the context of a generator or a hook.
type contextKey struct{}

// passing is what a generator or a hook can ask of the pass in which it is called.
type passing struct {
	name      string // of the operator
	local     client.Client
	target    client.Client // nil where there is none
	component client.Object
	placement client.ObjectKey
	look      engine.Look // nil outside a renderer
	scheme    *runtime.Scheme
	// asked reports whether somebody used the client of the target.
	asked atomic.Bool
}

// with returns the same for another copy of the component.
func (p *passing) with(component client.Object) *passing {
	return &passing{name: p.name, local: p.local, target: p.target, component: component, placement: p.placement}
}

func (p *passing) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

var (
	errNoLookup = errors.New("component: the context is not that of a renderer or a generator")
	errNoPass   = errors.New("component: the context is not that of a generator or a hook")
	errNoTarget = errors.New("component: there is no client for the dependents in a post-read hook")
)

func passingOf(ctx context.Context) (*passing, error) {
	if p, ok := ctx.Value(contextKey{}).(*passing); ok {
		return p, nil
	}
	return nil, errNoPass
}

// ClientFromContext returns a client for the cluster of the dependents, which acts as the user who
// applies them. It works in the context of a [Renderer] or [Generator] and of hooks but the post-read
// ones; anywhere else it is an error. What was read by it is not tracked: a renderer that asks for it is
// called in every pass. Use [Lookup] instead where it will do.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	p, err := passingOf(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.target == nil:
		return nil, errNoTarget
	}
	p.asked.Store(true)
	return p.target, nil
}

// Lookup reads the object with a key into obj, from the cluster of the dependents and as the user who applies
// them. It works in the context of a [Renderer] or [Generator]; anywhere else it is an error. The error for an
// object that does not exist is the API server's.
//
// What is looked up is tracked: the renderer is called again when the object has changed, has been created
// or deleted, and not otherwise. That takes one watch of the metadata for each object, so look up a few
// objects, not all of a kind. The user needs the permissions get, list and watch for the object; for the
// operator's own, add them to Needs of [Options.Loop].
func Lookup(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	p, err := passingOf(ctx)
	switch {
	case err != nil:
		return err
	case p.look == nil:
		return errNoLookup
	}
	kind, err := apiutil.GVKForObject(obj, p.scheme)
	if err != nil {
		return fmt.Errorf("look up %s: %w", key, err)
	}
	live, err := p.look(ctx, kind, key)
	if err != nil {
		return err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		live.DeepCopyInto(u)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, obj); err != nil {
		return fmt.Errorf("look up %s %s: %w", kind.Kind, key, err)
	}
	return nil
}

// LocalClientFromContext returns the client of the manager. A renderer that asks for it is called in every
// pass. It is an error outside a pass.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return nil, err
	}
	p.asked.Store(true)
	return p.local, nil
}

// ReconcilerNameFromContext returns the name of the operator. It is an error outside a pass.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.name, nil
}

// ComponentFromContext returns the component, which must not be changed. It is an error outside a pass.
func ComponentFromContext(ctx context.Context) (client.Object, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return nil, err
	}
	return p.component, nil
}

// ComponentNameFromContext returns what the dependents are named after. It is an error outside a pass.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.placement.Name, nil
}

// ComponentNamespaceFromContext returns where dependents go that name no namespace. It is an error outside
// a pass.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.placement.Namespace, nil
}

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

// ClientFromContext returns a client for the cluster of the dependents, which acts as the user who applies
// them. It works in the context of a [Renderer], a [Generator] and all hooks except post-read hooks. Anywhere
// else it returns an error. Its reads are not tracked, so a renderer that asks for it is called in every pass.
// Prefer [Lookup].
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

// Lookup reads the object with this key into obj, from the cluster of the dependents and as the user who applies
// them. It works in the context of a [Renderer] or [Generator]. Anywhere else it returns an error. If the object
// does not exist, the error is that of the API server (NotFound).
//
// Lookups are tracked: when the object is created, changed or deleted, the renderer is called again. This takes
// one watch of metadata for each object, so look up a few objects rather than all of a kind. The user needs the
// permissions get, list and watch for the object. For the operator itself, add them to Needs of [Options.Loop].
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
// pass. Outside a pass it returns an error.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return nil, err
	}
	p.asked.Store(true)
	return p.local, nil
}

// ReconcilerNameFromContext returns the name of the operator. Outside a pass it returns an error.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.name, nil
}

// ComponentFromContext returns the component, which must not be changed. Outside a pass it returns an error.
func ComponentFromContext(ctx context.Context) (client.Object, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return nil, err
	}
	return p.component, nil
}

// ComponentNameFromContext returns the base of the dependents' names. Outside a pass it returns an error.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.placement.Name, nil
}

// ComponentNamespaceFromContext returns the namespace of dependents that name none. Outside a pass it returns
// an error.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.placement.Namespace, nil
}

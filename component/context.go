package component

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	revision  int64        // 0 as long as it is not known
	digest    string       // of what the revision is rendered from
	looks     engine.Looks // nil outside a renderer
	scheme    *runtime.Scheme
	event     func(reason, note string)
	// asked reports whether somebody used the client of the target.
	asked atomic.Bool
}

// with returns the same for another copy of the component.
func (p *passing) with(component client.Object) *passing {
	return &passing{name: p.name, local: p.local, target: p.target, component: component, placement: p.placement, revision: p.revision, digest: p.digest, event: p.event}
}

func (p *passing) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

var (
	errNoPass     = errors.New("component: the context is not that of a generator or a hook")
	errNoRevision = errors.New("component: the context is not that of a renderer, a generator or a post-reconcile hook, which know the revision")
	errNoTarget   = errors.New("component: there is no client for the dependents in a post-read hook")
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

// ComponentRevisionFromContext returns which revision of the component is rendered, as in status.revision. It is 1 until
// the component is ready for the first time, and then grows by one with each change of the spec, of something that the
// component refers to, or of the version of the renderer; see [Versioned]. It works in the context of a [Renderer], a
// [Generator] and post-reconcile hooks. Anywhere else it returns an error.
func ComponentRevisionFromContext(ctx context.Context) (int64, error) {
	p, err := passingOf(ctx)
	if err == nil && p.revision == 0 {
		err = errNoRevision
	}
	if err != nil {
		return 0, err
	}
	return p.revision, nil
}

// ComponentDigestFromContext returns what identifies the revision: two revisions with the same digest are rendered from
// the same. It works where [ComponentRevisionFromContext] does.
func ComponentDigestFromContext(ctx context.Context) (string, error) {
	if _, err := ComponentRevisionFromContext(ctx); err != nil {
		return "", err
	}
	p, err := passingOf(ctx)
	if err != nil {
		return "", err
	}
	return p.digest, nil
}

// RecordEvent records an event of type Normal about the component. reason is a CamelCase word. It works in the context of a
// [Renderer], a [Generator] and all hooks; anywhere else it returns an error. They are called more than once for the same,
// so call it only when something happens.
func RecordEvent(ctx context.Context, reason, note string) error {
	p, err := passingOf(ctx)
	if err != nil {
		return err
	}
	p.event(reason, note)
	return nil
}

package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/graph"
)

// renderings remembers what components rendered, without the manifests: these are only needed where
// something is to be applied, and are rendered again then.
type renderings struct {
	mu         sync.Mutex
	components map[types.UID]rendering
}

type rendering struct {
	inputs     string
	objects    []outline
	unrendered []string
	lookups    []lookup
	apis       *served // nil if it does not depend on them
}

// recall returns what a component rendered from the same inputs.
func (r *renderings) recall(component types.UID, inputs string) (rendering, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.components[component]
	return known, ok && inputs != "" && known.inputs == inputs
}

// keep remembers what a component rendered.
func (r *renderings) keep(component types.UID, what rendering) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.components == nil {
		r.components = map[types.UID]rendering{}
	}
	r.components[component] = what
}

// forget drops what a component rendered.
func (r *renderings) forget(component types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.components, component)
}

// Forget drops what is known of a component that is gone.
func (e *Engine) Forget(component types.UID) {
	e.memory.forget(component)
	e.polls.forget(component)
	e.rendered.forget(component)
	e.fights.forget(component)
	e.rejections.forget(component)
	e.released.forget(component)
	e.graces.begin(component, nil, time.Time{})
}

// wanted returns what the component is to have. If its inputs are those of an earlier pass, the objects
// have no manifests.
func (p *pass) wanted(ctx context.Context) ([]desired.Object, error) {
	known, ok := p.rendered.recall(p.c.UID, p.c.Inputs)
	if ok && (len(known.lookups) > 0 || known.apis != nil) {
		if known.lookups, ok = p.unchanged(ctx, known.lookups); ok {
			if known.apis, ok = p.sameAPIs(ctx, known.apis); ok {
				p.rendered.keep(p.c.UID, known)
			}
		}
	}
	if ok {
		objects := full(known.objects)
		p.manifests = once(func(ctx context.Context) (map[graph.Key]desired.Object, error) { return p.again(ctx, objects) })
		p.unrendered = known.unrendered
		return objects, nil
	}
	return p.render(ctx)
}

// render returns the checked dependents.
func (p *pass) render(ctx context.Context) ([]desired.Object, error) {
	looked := &lookups{pass: p, taken: map[projection.Key]lookup{}}
	rendered, err := p.c.Render(ctx, looked)
	apis := looked.end()
	taken := looked.all()
	p.follow(taken, apis != nil)
	if apis != nil {
		p.settle(*apis)
	}
	if err != nil {
		p.rendered.forget(p.c.UID)
		return nil, fmt.Errorf("cannot render the dependents: %w", err)
	}
	sources, err := p.store(rendered.Objects)
	if err != nil {
		p.rendered.forget(p.c.UID)
		return nil, err
	}
	objects, err := desired.Normalize(sources, desired.Options{
		Name: p.Name, OwnerID: p.c.Owner, OwnerUID: string(p.c.UID), Generation: p.c.Generation, Namespace: p.c.In, Policies: p.c.Policies, Scope: p.scope, Scheme: p.Scheme,
		ManagedTypes: p.ManagedTypes, HealthRule: p.Rules.Check, Missing: p.missing,
	})
	if p.undiscovered != nil { // what follows from it is wrong
		err = fmt.Errorf("ask which kinds are served: %w", p.undiscovered)
	}
	p.warn(objects)
	// What the target does not serve yet may become something else when it does.
	changing := func(o desired.Object) bool { return o.Unserved }
	if inputs := p.c.Inputs; err != nil || inputs == "" || rendered.Volatile || slices.ContainsFunc(objects, changing) {
		p.rendered.forget(p.c.UID)
	} else {
		p.rendered.keep(p.c.UID, rendering{inputs, outlines(objects), rendered.Unrendered, taken, apis})
	}
	p.sources, p.unrendered = sources, rendered.Unrendered
	return objects, err
}

// warn passes on what is deprecated in objects.
func (p *pass) warn(objects []desired.Object) {
	var texts []string
	for i := range objects {
		texts = append(texts, objects[i].Warnings...)
	}
	if p.c.Warn != nil && len(texts) > 0 {
		p.c.Warn(texts)
	}
}

// errUnstable is the error of a component that renders something else from the same inputs.
var errUnstable = errors.New("the same component was rendered differently the second time; " +
	"what is rendered must depend on the component, its references and lookups alone")

// again renders the manifests of objects that are known without.
func (p *pass) again(ctx context.Context, objects []desired.Object) (map[graph.Key]desired.Object, error) {
	now, err := p.render(ctx)
	if err != nil {
		return nil, err
	}
	if digestOf(now) != digestOf(objects) {
		p.rendered.forget(p.c.UID)
		return nil, errUnstable
	}
	manifests := make(map[graph.Key]desired.Object, len(now))
	for _, o := range now {
		manifests[graph.Key(o.Item.Key())] = o
	}
	return manifests, nil
}

// once returns a function that calls f at the first call, and returns its results to all callers. Unlike
// with sync.OnceValues, those who wait for the first do so only until their own context is done: f may take
// long.
func once[R any](f func(context.Context) (R, error)) func(context.Context) (R, error) {
	first, done := make(chan struct{}, 1), make(chan struct{})
	first <- struct{}{}
	var result R
	err := errors.New("it ended without a result")
	return func(ctx context.Context) (R, error) {
		select {
		case <-first:
			defer close(done)
			result, err = f(ctx)
			return result, err
		case <-done:
			return result, err
		case <-ctx.Done():
			var none R
			return none, ctx.Err()
		}
	}
}

// source returns what the renderer returned for a member. It is called for several members at a time.
func (p *pass) source(ctx context.Context, m *member) (client.Object, error) {
	if p.manifests != nil {
		if _, err := p.manifests(ctx); err != nil {
			return nil, err
		}
	}
	for _, o := range p.sources {
		kind := o.GetObjectKind().GroupVersionKind().GroupKind()
		if kind == kindOf(m.item) && o.GetName() == m.item.Name && cmp.Or(o.GetNamespace(), p.c.In) == m.item.Namespace {
			return o, nil
		}
	}
	return nil, fmt.Errorf("%s is not rendered", ref(m.item))
}

// complete renders the manifest of a member if it is not known.
func (p *pass) complete(ctx context.Context, m *member) error {
	if m.wanted == nil || m.wanted.Manifest != nil {
		return nil
	}
	manifests, err := p.manifests(ctx)
	if err != nil {
		return err
	}
	wanted := *m.wanted
	rendered := manifests[graph.Key(m.item.Key())]
	if m.autoscaled {
		rendered = rendered.Autoscaled(p.Name)
	}
	wanted.Manifest, wanted.Initial = rendered.Manifest, rendered.Initial
	m.wanted = &wanted
	return nil
}

// digestOf identifies the manifests of a component and how they are applied.
func digestOf(objects []desired.Object) string {
	h := sha256.New()
	for i := range objects {
		describe(h, &objects[i])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func describe(h hash.Hash, o *desired.Object) {
	purge := "-"
	if o.Purge != nil {
		purge = fmt.Sprint(*o.Purge)
	}
	i := o.Item
	if o.Timeout > 0 {
		purge += " " + o.Timeout.String()
	}
	text := fmt.Sprintln(i.Key(), i.Version, i.Digest, i.Policies, i.ApplyOrder, i.DeleteOrder, purge, strings.Join(i.DependsOn, ","))
	_, _ = io.WriteString(h, text) // a hash never fails
}

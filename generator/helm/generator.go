package helm

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/loop"
)

// Options of a [Generator]. The zero value is ready to use.
type Options struct {
	// Values have priority over the chart's values.yaml. Those of the component have priority over them.
	Values map[string]any
	// SkipCRDs leaves out what is in crds/. Use it if several components in a cluster come from the same chart: only
	// one of them can have its definitions.
	SkipCRDs bool
	// SkipDeleteHooks leaves out hooks that run before or after a release is deleted.
	SkipDeleteHooks bool
}

// Generator renders a chart. It is a [component.Generator] whose parameters are the chart's values. Make one with
// [NewGenerator]. It can be used by several goroutines at a time.
type Generator struct {
	options Options
	version string
	chart   *source
	pending pending
	// moving are the UIDs of components that take over a release or give it back.
	moving *lru.Cache
}

var (
	_ component.Generator = (*Generator)(nil)
	_ component.Versioned = (*Generator)(nil)
)

// NewGenerator loads the chart in a folder of fsys, or in a file whose name ends in .tgz, and returns a generator for
// it. A chart that cannot be rendered whatever its values are is an error: one whose templates cannot be parsed, a
// library chart, and one that lacks a sub-chart that it names.
func NewGenerator(fsys fs.FS, path string, o Options) (*Generator, error) {
	c, err := open(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", path, err)
	}
	if o.Values, err = plain(o.Values); err != nil {
		return nil, fmt.Errorf("chart %s: Options.Values: %w", path, err)
	}
	c.capable = c.capable || mentionsIn(o.Values)
	return &Generator{options: o, version: c.digest + digestOf(o), chart: c, pending: pending{lru.New(mostPending)}, moving: lru.New(mostPending)}, nil
}

// Generate implements [component.Generator].
func (g *Generator) Generate(ctx context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	set, err := g.render(ctx, namespace, name, parameters.ToUnstructured())
	if err != nil {
		return nil, err
	}
	operator, err := component.ReconcilerNameFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("helm: %w; use Render to render a chart without a component", err)
	}
	return set.Annotated(operator, nil)
}

// Version implements [component.Versioned]. It identifies the chart and the options.
func (g *Generator) Version() string { return g.version }

// Kinds returns the kinds of what the chart renders with each of these values, in order; without values, with those of
// the chart. The cluster is taken to serve each API that a template asks for by name. Use it for
// [component.Options.Kinds], with values that switch on whatever components may.
func (g *Generator) Kinds(values ...map[string]any) ([]schema.GroupVersionKind, error) {
	if len(values) == 0 {
		values = []map[string]any{nil}
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, v := range values {
		for _, revision := range []int64{1, 2} {
			d := &draws{}
			set, err := g.execute(context.Background(), &Release{ //nolint:forbidigo // it looks nothing up
				Namespace: "default", Name: "release-name", Values: v, Revision: revision,
				Capabilities: component.Capabilities{APIs: slices.Concat(common.DefaultVersionSet, g.chart.asked)},
			}, d)
			if err != nil {
				return nil, err
			}
			d.keep(&set)
			objects, err := set.Annotated("trimtab.dev", nil)
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				kinds[o.GetObjectKind().GroupVersionKind()] = true
			}
			for _, kind := range storage(objects, "trimtab.dev") {
				kinds[kind] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }), nil
}

// Needs returns the permissions that the operator needs besides those for the dependents: to find out what the cluster
// can do, if the chart asks for that, and whether there are objects of the kinds that crds/ defines. [component.New]
// asks for them.
func (g *Generator) Needs() []loop.Need {
	var needs []loop.Need
	if g.chart.capable {
		needs = component.CapabilityNeeds()
	}
	if g.options.SkipCRDs {
		return needs
	}
	return append(needs, g.chart.defined...)
}

// NewRenderer returns a [component.Renderer] that renders the chart of g with the values of a component.
func NewRenderer[T component.Object](g *Generator, values func(T) (map[string]any, error)) component.Renderer[T] {
	return renderer[T]{g, values}
}

type renderer[T component.Object] struct {
	*Generator

	values func(T) (map[string]any, error)
}

// Render implements [component.Renderer].
func (r renderer[T]) Render(ctx context.Context, request component.RenderRequest[T]) (component.Set, error) {
	values, err := r.values(request.Component)
	if err != nil {
		return component.Set{}, err
	}
	return r.render(ctx, request.Namespace, request.Name, values)
}

package transform

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/loop"
)

// ParameterTransformer changes the parameters of a generator.
type ParameterTransformer interface {
	// TransformParameters returns the parameters to use. It must not change those that it is given. It must return the
	// same for the same arguments, or implement [component.Versioned].
	TransformParameters(namespace, name string, parameters component.Unstructurable) (component.Unstructurable, error)
}

// ObjectTransformer changes the objects of a generator.
type ObjectTransformer interface {
	// TransformObjects returns the objects to use. It may change those that it is given. It must return the same for the
	// same arguments, or implement [component.Versioned].
	TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error)
}

// ParameterFunc is a [ParameterTransformer] that is a function.
type ParameterFunc func(namespace, name string, parameters component.Unstructurable) (component.Unstructurable, error)

// TransformParameters implements [ParameterTransformer].
func (f ParameterFunc) TransformParameters(namespace, name string, parameters component.Unstructurable) (component.Unstructurable, error) {
	return f(namespace, name, parameters)
}

// ObjectFunc is an [ObjectTransformer] that is a function.
type ObjectFunc func(namespace, name string, objects []client.Object) ([]client.Object, error)

// TransformObjects implements [ObjectTransformer].
func (f ObjectFunc) TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error) {
	return f(namespace, name, objects)
}

// Transformable is a [component.Generator] around another one. Make one with [New].
type Transformable struct {
	inner      component.Generator
	parameters []ParameterTransformer
	objects    []ObjectTransformer
}

var (
	_ component.Generator     = (*Transformable)(nil)
	_ component.Versioned     = (*Transformable)(nil)
	_ component.SchemeBuilder = (*Transformable)(nil)
)

// New returns a generator around g, which has the version, the permissions and the types of g.
func New(g component.Generator) *Transformable { return &Transformable{inner: g} }

// WithParameterTransformer adds a transformer, which is called after those that were added before. It returns g.
func (g *Transformable) WithParameterTransformer(t ParameterTransformer) *Transformable {
	g.parameters = append(g.parameters, t)
	return g
}

// WithObjectTransformer adds a transformer, which is called after those that were added before. It returns g.
func (g *Transformable) WithObjectTransformer(t ObjectTransformer) *Transformable {
	g.objects = append(g.objects, t)
	return g
}

// Generate implements [component.Generator].
func (g *Transformable) Generate(ctx context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	var err error
	for i, t := range g.parameters {
		if parameters, err = t.TransformParameters(namespace, name, parameters); err != nil {
			return nil, fmt.Errorf("parameter transformer %d: %w", i+1, err)
		}
	}
	objects, err := g.inner.Generate(ctx, namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	for i, t := range g.objects {
		if objects, err = t.TransformObjects(namespace, name, objects); err != nil {
			return nil, fmt.Errorf("object transformer %d: %w", i+1, err)
		}
	}
	return objects, nil
}

// Version implements [component.Versioned]. It joins the versions of the generator and of the transformers.
func (g *Transformable) Version() string {
	var all []string
	add := func(v any) {
		if v, ok := v.(component.Versioned); ok {
			all = append(all, v.Version())
		}
	}
	add(g.inner)
	for _, t := range g.parameters {
		add(t)
	}
	for _, t := range g.objects {
		add(t)
	}
	return strings.Join(all, " ")
}

// Needs returns the permissions that the generator needs, if it says so.
func (g *Transformable) Needs() []loop.Need {
	if n, ok := g.inner.(interface{ Needs() []loop.Need }); ok {
		return n.Needs()
	}
	return nil
}

// AddToScheme implements [component.SchemeBuilder].
func (g *Transformable) AddToScheme(scheme *runtime.Scheme) error {
	if b, ok := g.inner.(component.SchemeBuilder); ok {
		return b.AddToScheme(scheme)
	}
	return nil
}

// MergeMaps returns a copy of x with y over it. Maps that are in both are merged, everything else is as in y, also null.
// Neither x nor y is changed, and the result shares no map[string]any and no []any with them.
// Each may be nil.
func MergeMaps(x, y map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range x {
		out[key] = copyOf(value)
	}
	for key, value := range y {
		below, ok := out[key].(map[string]any)
		if over, is := value.(map[string]any); ok && is {
			out[key] = MergeMaps(below, over)
			continue
		}
		out[key] = copyOf(value)
	}
	return out
}

// copyOf copies maps and lists; what else is in parameters cannot be changed.
func copyOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return MergeMaps(v, nil)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyOf(v[i])
		}
		return out
	}
	return value
}

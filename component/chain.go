package component

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/loop"
)

// Transformer changes what a [Renderer] returned, before it is applied. See [Set.Each] and [Set.Add].
type Transformer[T Object] func(ctx context.Context, r RenderRequest[T], set *Set) error

// Chain returns a [Renderer] whose result is that of r, changed by transformers one after the other. It has the version,
// the permissions and the types of r.
//
// A transformer must do the same each time it is called for the same component, as renderers must.
func Chain[T Object](r Renderer[T], transformers ...Transformer[T]) Renderer[T] {
	return Around(r, func(ctx context.Context, request RenderRequest[T]) (Set, error) {
		set, err := r.Render(ctx, request)
		if err != nil {
			return Set{}, err
		}
		for _, t := range transformers {
			if err := t(ctx, request, &set); err != nil {
				return Set{}, err
			}
		}
		return set, nil
	})
}

// Around returns a [Renderer] that calls render, and has the version, the permissions and the types of r. It is for
// functions that call r and do something before or after.
func Around[T Object](r Renderer[T], render RenderFunc[T]) Renderer[T] {
	return decorated[T]{around{r}, render}
}

type decorated[T Object] struct {
	around
	RenderFunc[T]
}

// Objects returns the objects of the set, without those that are made later; see [From]. Functions are no objects.
func (s *Set) Objects() []client.Object {
	var out []client.Object
	for _, d := range s.dependents {
		if !d.absent() && !d.isFunction() {
			out = append(out, d.object)
		}
	}
	return out
}

// Each replaces each object of the set by what f returns for a copy of it, which f may change. Settings of the
// [Dependent] stay. If f returns nil, the object is left out, and so is what is made from it. f is called later with
// objects that are made later; see [From].
func (s *Set) Each(f func(client.Object) (client.Object, error)) error {
	out := map[*Dependent]bool{}
	for i, d := range s.dependents {
		if d.from != nil {
			build := d.build
			d.build = func(observed client.Object) (client.Object, error) {
				obj, err := build(observed)
				if err != nil || desired.IsNil(obj) {
					return obj, err
				}
				return f(obj)
			}
			continue
		}
		if d.isFunction() {
			continue
		}
		if desired.IsNil(d.object) {
			return fmt.Errorf("object %d of the set is nil; leave it out", i+1)
		}
		obj, _ := d.object.DeepCopyObject().(client.Object)
		changed, err := f(obj)
		if err != nil {
			return err
		}
		d.object, out[d] = changed, desired.IsNil(changed)
	}
	s.remove(out)
	return nil
}

// isFunction reports whether it is a function; see [Set.Do].
func (d *Dependent) isFunction() bool {
	_, is := d.object.(*function)
	return is
}

// remove removes dependents, and those that are made from them.
func (s *Set) remove(out map[*Dependent]bool) {
	for found := true; found; {
		found = false
		for _, d := range s.dependents {
			if d.from != nil && out[d.from] && !out[d] {
				out[d], found = true, true
			}
		}
	}
	gone := func(d *Dependent) bool { return out[d] }
	s.dependents = slices.DeleteFunc(s.dependents, gone)
	for _, d := range s.dependents {
		d.after = slices.DeleteFunc(d.after, gone)
	}
}

// needy is implemented by a [Generator] or [Renderer] that needs permissions of its own.
type needy interface{ Needs() []loop.Need }

// around has what a [Generator] or [Renderer] may implement besides. It is embedded in what calls one.
type around struct{ inner any }

// Version implements [Versioned].
func (a around) Version() string {
	if v, ok := a.inner.(Versioned); ok {
		return v.Version()
	}
	return ""
}

// Needs implements needy.
func (a around) Needs() []loop.Need {
	if n, ok := a.inner.(needy); ok {
		return n.Needs()
	}
	return nil
}

// AddToScheme implements [SchemeBuilder].
func (a around) AddToScheme(scheme *runtime.Scheme) error {
	if b, ok := a.inner.(SchemeBuilder); ok {
		return b.AddToScheme(scheme)
	}
	return nil
}

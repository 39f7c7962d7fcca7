package componenttest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/golden"
	"github.com/trimtab-dev/trimtab/loop"
)

// Fixed returns r as [CrashSweep] and [Golden] have it: functions of charts that return something else each time, such as
// randAlphaNum and genCA, return fixed texts, so that two runs can be compared.
func Fixed[T component.Object](r component.Renderer[T]) component.Renderer[T] { return fixed[T]{r} }

// fixed is a renderer for which functions of charts that return something else each time return fixed texts: two runs
// can be compared.
type fixed[T component.Object] struct{ inner component.Renderer[T] }

// Render implements component.Renderer.
func (f fixed[T]) Render(ctx context.Context, r component.RenderRequest[T]) (component.Set, error) {
	return f.inner.Render(golden.With(ctx), r)
}

// Version implements component.Versioned.
func (f fixed[T]) Version() string {
	if v, ok := f.inner.(component.Versioned); ok {
		return v.Version()
	}
	return ""
}

// Needs returns the permissions that the renderer needs.
func (f fixed[T]) Needs() []loop.Need {
	if n, ok := f.inner.(interface{ Needs() []loop.Need }); ok {
		return n.Needs()
	}
	return nil
}

// AddToScheme implements component.SchemeBuilder.
func (f fixed[T]) AddToScheme(scheme *runtime.Scheme) error {
	if b, ok := f.inner.(component.SchemeBuilder); ok {
		return b.AddToScheme(scheme)
	}
	return nil
}

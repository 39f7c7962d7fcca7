package componenttest

import (
	"context"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/golden"
)

// Fixed returns r as [CrashSweep] and [Golden] have it: functions of charts that return something else each time, such as
// randAlphaNum and genCA, return fixed texts, so that two runs can be compared.
func Fixed[T component.Object](r component.Renderer[T]) component.Renderer[T] {
	return component.Around(r, func(ctx context.Context, request component.RenderRequest[T]) (component.Set, error) {
		return r.Render(golden.With(ctx), request)
	})
}

// Package guestbook has what samples/guestbook renders: a command cannot be imported.
package guestbook

import (
	"context"

	"github.com/trimtab-dev/trimtab/component"
	v1 "github.com/trimtab-dev/trimtab/samples/guestbook/api/v1"
)

// Render is the renderer of the sample.
func Render(ctx context.Context, r component.RenderRequest[*v1.Guestbook]) (component.Set, error) {
	return render(ctx, r)
}

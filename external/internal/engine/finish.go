package engine

import (
	"context"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// finish lets the driver do in the cluster what follows from a resource that matches the spec.
func (p *caller) finish(ctx context.Context) {
	p.facts.Did.Finish = true
	before, last := p.facts.Last, p.last
	driver, cluster, have := &p.e.driver, p.run.Client(), p.seen.Have
	p.ask(ctx, decide.ActionFinish, func(ctx context.Context, obj Object) (string, error) {
		return "ok", driver.Finish(ctx, cluster, obj, have)
	})
	if p.facts.Last.Failed {
		p.facts.Finish, p.undone = p.facts.Last, p.last.text()
	}
	p.facts.Last, p.last = before, last
}

package engine

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// gatherScope gathers whether anything may be called. The outcome of a call of this pass is
// reported first.
func (p *pass) gatherScope() {
	f := &p.facts
	switch {
	case p.hangs != nil, p.shared == nil && p.connect == nil:
		f.Scope = decide.ScopeOccupied
		if p.out != nil && p.out.action == decide.ActionCreate {
			p.track.createHangs(time.Now())
		}
	case p.connect != nil:
		f.Scope = decide.ScopeUnconnectable
	case p.turned != decide.ScopeOpen:
		f.Scope = p.turned
	case f.Last.Failed:
		f.Scope = decide.ScopeOpen
	default:
		f.Scope, p.shut = p.shared.scope.state(subjectOf(p.obj).key, time.Now())
	}
}

// admitted takes the object's turn to call the external API, and reports whether it has one.
func (p *pass) admitted() bool {
	if p.hangs = p.e.left.stuck(p.uid()); p.hangs != nil {
		return false
	}
	if p.shared == nil {
		return false
	}
	p.turned, p.shut = p.shared.scope.enter(subjectOf(p.obj).key, time.Now())
	return p.turned == decide.ScopeOpen
}

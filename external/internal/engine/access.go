package engine

import (
	"context"
	"errors"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// access is the way from a managed object to the external API: the client, and whether the object may use
// it now.
type access struct {
	managed

	client *connected
	// shared is what the object shares with others of the same client. It is nil if the client is
	// not known; connect or hangs then says why.
	shared  *shared
	connect error
	// login is what the client is made from; nil if that is not known.
	login *login
	// turned is why the object may not call the external API; shut is the text for users.
	turned decide.Scope
	shut   string
}

// findScope determines which client the object needs. An error counts as one of connecting.
func (p *access) findScope(ctx context.Context) {
	if p.hangs != nil && p.e.options.Connector != nil { // the driver cannot be asked for the scope, nor can anything be called
		return
	}
	var err error
	p.shared, p.login, err = p.e.scopeOf(ctx, p.run, subjectOf(p.obj), p.lend)
	if isUnreturned(err) {
		p.hangs = err
	} else if p.login != nil && p.track.login != p.login.version { // what was seen with other credentials is seen again
		p.e.memory.drop(p.uid())
		p.track.login = p.login.version
	}
	if err != nil && p.hangs == nil {
		crash, _ := errors.AsType[*guard.PanicError](err)
		p.logPanic(crash)
		p.connect = toldOnce(err)
	}
}

// gatherScope gathers whether anything may be called. The outcome of a call of this pass is
// reported first.
func (p *access) gatherScope() {
	f := &p.facts
	switch {
	case p.hangs != nil, p.shared == nil && p.connect == nil:
		f.Scope = decide.ScopeOccupied
		if p.abandoned != nil && p.abandoned.action == decide.ActionCreate {
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
func (p *access) admitted() bool {
	if p.hangs = p.e.abandoned.stuck(p.uid()); p.hangs != nil {
		return false
	}
	if p.shared == nil {
		return false
	}
	p.turned, p.shut = p.shared.scope.enter(subjectOf(p.obj).key, time.Now())
	return p.turned == decide.ScopeOpen
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// assigned is the identity that the API assigned in the answer to a create, or to an update that
// replaced the resource, even if the answer comes after the call was abandoned.
type assigned struct{ id atomic.Pointer[string] }

// take notes the identity in the answer to a call about the external resource called name.
func (a *assigned) take(name, id string) {
	if id != "" && id != name {
		a.id.Store(&id)
	}
}

// of returns the identity that was assigned; empty if none was.
func (a *assigned) of() string {
	if a == nil || a.id.Load() == nil {
		return ""
	}
	return *a.id.Load()
}

// keepGiven makes durable the identity that the API assigned: it is the only way to find the
// resource again.
func (p *pass) keepGiven(ctx context.Context) error {
	id := p.track.given.of()
	if id == "" || p.record.Given == id || !p.record.Exists() {
		return nil
	}
	r := p.record
	r.Given = id
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record the id %q, which the API assigned: %w", id, err)
	}
	p.facts.Seen = decide.Seen{}
	return nil
}

// note makes durable what a call has shown.
func (p *pass) note(ctx context.Context, a decide.Action) error {
	switch a {
	case decide.ActionObserve:
		return p.pin(ctx)
	case decide.ActionUpdate:
		return p.keepGiven(ctx)
	case decide.ActionCreate:
		return errors.Join(p.keepGiven(ctx), p.withdraw(ctx))
	default:
		return nil
	}
}

// sawGiven makes durable that an observation has shown the resource by the identity that the API
// assigned: from then on, a resource that is not found is gone.
func (p *pass) sawGiven(ctx context.Context) error {
	r := p.record
	r.Done = time.Now()
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record that the resource is found by its id: %w", err)
	}
	p.track.called = r.Done
	p.facts.Seen = decide.Seen{}
	return nil
}

// rewrite makes a changed record durable.
func (p *pass) rewrite(ctx context.Context, r record.Record) error {
	r, value, err := record.Settle(r)
	if err != nil {
		return err
	}
	if err := p.persist(ctx, value); err != nil {
		return err
	}
	p.record = r
	p.identify()
	return nil
}

// putBack restores a record that somebody removed from the object, if this process knows it: for
// some resources nothing else shows the owner.
func (p *pass) putBack(ctx context.Context) error {
	known := p.track.known
	if p.record.Exists() || p.inherited != nil || p.facts.Record.Trouble == decide.TroubleCorrupt || known.UID != string(p.obj.GetUID()) {
		return nil
	}
	if err := p.rewrite(ctx, known); err != nil {
		return fmt.Errorf("put the record back, which is not on the object any more: %w", err)
	}
	p.event("Warning", "RecordPutBack", p.e.putBack(known))
	return nil
}

// putBack is the text of the event about a restored record.
func (e *Engine) putBack(known record.Record) string {
	return fmt.Sprintf("annotation %s was removed; without it the operator loses track of %s %q, so it was restored",
		api.AnnotationExternal, strings.ToLower(e.kind), plain.Text(cmp.Or(known.Given, known.ID)))
}

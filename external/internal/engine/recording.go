package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// recording makes durable, on the object, what must be known to find the resource again. Every write
// fails unless the object is still at the version that was read.
type recording struct{ identity }

// writeMarker makes durable that a create may be called.
func (p *recording) writeMarker(ctx context.Context, incarnation int64) error {
	r, _, err := p.e.newRecord(p.obj, p.place, p.named, incarnation)
	if err != nil {
		return err
	}
	r, value, err := record.Settle(r.Follows(p.record))
	if err != nil {
		return err
	}
	if err := p.persist(ctx, value); err != nil {
		if errors.Is(err, errRecordFirst) {
			p.track.prepare(r.Create, p.e.unlocked)
		}
		return fmt.Errorf("record that a create may be called: %w", err)
	}
	if r.ID != p.id {
		p.facts.Seen = decide.Seen{}
	}
	p.record, p.inherited = r, nil
	p.identify()
	p.track.wroteMarker(r.Create, r.Incarnation)
	return nil
}

// withdraw makes durable that a create was certainly refused, if no mark could show later that the
// resource with that name is not ours.
func (p *recording) withdraw(ctx context.Context) error {
	if !p.e.observesFirst() || !p.track.withdraws(p.record) && !p.track.followed.refused(p.record) {
		return nil
	}
	r := p.record
	r.Refused, r.Doubt = true, p.track.doubtful
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record that the create was refused: %w", err)
	}
	return nil
}

// keepAssigned makes durable the identities that the API assigned: of the resource, the only way to find it again, and of
// the operation that goes on. An operation that succeeded is dropped.
func (p *recording) keepAssigned(ctx context.Context) error {
	r, given := p.record, p.track.given
	if !r.Exists() {
		return nil
	}
	var begun *record.Operation
	if given != nil && given.incarnation == r.Incarnation {
		r.Given = cmp.Or(given.of(), r.Given)
		if begun = given.operation.Load(); begun != nil {
			r.Operation = *begun
		}
	}
	f := &p.track.followed
	if begun != nil && !f.ended.Is(*begun) {
		f.failure = nil
	}
	if f.failure == nil && f.ended.Is(r.Operation) && !p.facts.Deleting {
		r.Operation = record.Operation{}
	}
	if r != p.record {
		known := p.record.Given
		if err := p.rewrite(ctx, r); err != nil {
			return fmt.Errorf("record what the API calls the resource (%q) and the operation (%q): %w", r.Given, r.Operation.ID, err)
		}
		if r.Given != known && (!p.e.options.AssignedIDs || p.facts.Seen.Source != decide.SourceAnswer) { // otherwise it was returned with the id
			p.facts.Seen = decide.Seen{}
		}
	}
	if begun != nil && !p.run.Vanished() { // nothing can be written to an object that is gone
		given.operation.CompareAndSwap(begun, nil)
	}
	return nil
}

// sawGiven makes durable that an observation has shown the resource by the identity that the API
// assigned: from then on, a resource that is not found is gone.
func (p *recording) sawGiven(ctx context.Context) error {
	r := p.record
	r.Done = time.Now()
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record that the resource is found by its id: %w", err)
	}
	p.track.called = r.Done
	p.facts.Seen = decide.Seen{}
	return nil
}

// pin completes a record that does not say where its resource is, once the resource is seen: an
// operator wrote it that did not distinguish endpoints or installations.
func (p *recording) pin(ctx context.Context) error {
	r := p.record
	r.Place = r.Or(p.place)
	if r.Place == p.record.Place || !r.Exists() || !p.facts.Seen.Ours() || p.facts.Deleting || p.facts.Paused != decide.PauseNone {
		return nil
	}
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record where the resource is: %w", err)
	}
	return nil
}

// putBack restores a record that somebody removed from the object, if this process knows it: for
// some resources nothing else shows the owner.
func (p *recording) putBack(ctx context.Context) error {
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

// rewrite makes a changed record durable.
func (p *recording) rewrite(ctx context.Context, r record.Record) error {
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

// persist writes the record now; the write fails unless the object is still at the version that
// was read.
func (p *recording) persist(ctx context.Context, value string) error {
	before := p.obj.GetAnnotations()[api.AnnotationExternal]
	p.copy = nil
	annotate(p.obj, api.AnnotationExternal, value)
	if err := p.run.Persist(ctx); err != nil {
		annotate(p.obj, api.AnnotationExternal, before)
		return err
	}
	return nil
}

// putBack is the text of the event about a restored record.
func (e *Engine) putBack(known record.Record) string {
	return fmt.Sprintf("annotation %s was removed; without it the operator loses track of %s %q, so it was restored",
		api.AnnotationExternal, e.noun, plain.Text(cmp.Or(known.Given, known.ID)))
}

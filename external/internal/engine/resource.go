package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// resource is the external resource as far as this pass has seen it.
type resource struct {
	publishing

	observedAt time.Time
	seen       Observation
	changes    change.List
	wanted     wish // when the resource was observed
	// holder names, for users, the object that has the better claim.
	holder string
	// rememberedAt is the endpoint of what is known from memory.
	rememberedAt string
	// unreflected is why status does not show what was observed.
	unreflected error
	// completion is what the spec lacks; nil if it lacks nothing.
	completion *completion
	// found are the resources that were found by the mark.
	found []Found
	// shown reports whether the status of obj describes what this pass observed.
	shown bool
}

// gather brings the facts up to date.
func (p *resource) gather() decide.Facts {
	p.gatherReport()
	f := &p.facts
	f.Paused, f.Policy = p.settings.pause, p.settings.policy
	f.Dependencies = decide.DependenciesReady
	if len(p.waiting) > 0 {
		f.Dependencies = decide.DependenciesUnready
	}
	f.Depends, f.LastTry = p.e.driver.DependsOn != nil, p.run.Retry().Last && !f.Deleting // a deletion is never given up
	f.Grace, f.UniqueNames = p.e.grace(), p.e.options.UniqueNames
	f.MarkLater = p.e.options.MarkLater
	f.CanMark, f.CanUnmark = p.e.driver.Mark != nil && !p.e.options.Unmarked, p.e.driver.Unmark != nil
	p.gatherScope()
	now := time.Now()
	if f.Seen.Observed {
		now = p.observedAt
	}
	p.track.facts(f, now)
	p.gatherRecord()
	p.gatherOperation()
	f.Finishes = p.e.driver.Finish != nil
	f.Uncompleted = p.completion != nil && len(p.completion.fields) > 0
	f.Refused, f.RefusedAs = p.track.refused(p.basis()), p.track.refusal.class
	f.Unconfirmed = p.track.unconfirmed(p.obj.GetGeneration())
	f.SameUpdates = p.track.sameUpdates(p.obj.GetGeneration(), p.changes.ToRemove().Hash())
	return *f
}

// state is an external resource as it was observed, or as the API returned it, and how it differs
// from the spec.
type state struct {
	Observation

	changes change.List
	wanted  wish
}

// forget drops what is known about the state of the resource.
func (p *resource) forget() {
	p.seen, p.changes, p.facts.Seen, p.facts.Differs = Observation{}, nil, decide.Seen{}, decide.Differs{}
	p.facts.Unpublished, p.facts.Incomplete, p.completion = false, false, nil
}

// know records the state of the resource.
func (p *resource) know(ctx context.Context, s state, from decide.Source) {
	p.forget()
	p.seen, p.changes, p.wanted = s.Observation, s.changes, s.wanted
	p.track.observed = p.observedAt
	p.facts.Seen = decide.Seen{Observed: true, Phase: s.Phase, Source: from, Recoverable: s.Recoverable}
	if s.Phase == decide.PhaseMissing {
		p.track.sawNothing()
	} else {
		who := p.claimant()
		p.facts.Seen.Marked = who.Mark.Bears(s.Mark)
		p.facts.Seen.Owner = who.OwnerOf(s.Mark)
	}
	if err := p.meetRivals(ctx); err != nil {
		p.facts.Seen = decide.Seen{}
		p.last = answer{failure: &classification{class: decide.ClassTransient, text: plain.Error(err)}}
		p.facts.Last = decide.Answer{Of: decide.ActionObserve, Failed: true, Class: decide.ClassTransient}
		return
	}
	if s.Phase != decide.PhaseMissing {
		p.recognise(ctx, from)
	}
	if from == decide.SourceMemory {
		return
	}
	p.memorize(s.Observation, from)
	p.reflect()
}

// answered records the state that the API returned with its answer to a change, if it returned one,
// and logs what is wrong with it.
func (p *resource) answered(ctx context.Context, a returnedState) {
	if a.flaw != nil {
		p.run.Log().Error(a.flaw, "a part of the driver's response cannot be used; the resource is observed instead", "driver", p.e.driver.Type)
	}
	if a.state == nil {
		return
	}
	p.observedAt = time.Now()
	p.know(ctx, *a.state, decide.SourceAnswer)
}

// comparer returns the function that turns an observation into a state. It may be called after the
// pass.
func (p *resource) comparer() func(obj Object, o Observation) (state, error) {
	e, wanted, known := p.e, wish{generation: p.obj.GetGeneration()}, p.track.wish.generation
	return func(obj Object, o Observation) (state, error) {
		changes, err := e.understand(obj, o)
		s := state{Observation: o, changes: changes, wanted: wanted}
		if err == nil && o.compared() && (known != wanted.generation || changes.Repairable()) {
			s.wanted.hash = e.wants(obj)
		}
		return s, err
	}
}

// returnedState is the state that a driver passed on from the API's answer to a change; the zero value
// if there was none. flaw is why it cannot be used. It does not turn a change that the API accepted
// into a failure: the resource is observed instead.
type returnedState struct {
	state *state
	flaw  error
}

// returned compares what a driver passed on from the API's answer with the spec.
func returned(compare func(Object, Observation) (state, error), obj Object, o *Observation) returnedState {
	switch {
	case o == nil:
		return returnedState{}
	case o.Phase == decide.PhaseMissing:
		return returnedState{flaw: errors.New("what was created or updated is returned as missing")}
	}
	s, err := compare(obj, *o)
	if err != nil {
		return returnedState{flaw: err}
	}
	return returnedState{state: &s}
}

// understand compares what was observed with what is wanted. It is part of the call, so that a
// mistake of the driver is a failed observation.
func (e *Engine) understand(obj Object, o Observation) (change.List, error) {
	switch o.Phase {
	case decide.PhaseMissing, decide.PhaseCreating, decide.PhaseUpdating, decide.PhaseDeleting, decide.PhaseInProgress:
		return nil, nil
	case decide.PhaseAvailable, decide.PhaseDegraded, decide.PhaseFailed:
		return guarded("Compare", func() (change.List, error) {
			return e.driver.Compare(obj, o.Have), nil
		})
	}
	return nil, mistake{fmt.Errorf("the driver observed the unknown phase %q; this is a bug in %s", o.Phase, e.driver.Type)}
}

// meetRivals finds out who else claims the resource, unless its mark proves that it is ours or
// nothing depends on the answer.
func (p *resource) meetRivals(ctx context.Context) error {
	if p.facts.Seen.Owner == decide.OwnerUs || p.facts.Deleting && p.seen.Phase == decide.PhaseMissing {
		return nil
	}
	return p.contest(ctx)
}

// recognise determines how the resource relates to us and how it differs.
func (p *resource) recognise(ctx context.Context, from decide.Source) {
	if p.facts.Seen.Owner == decide.OwnerUs {
		p.track.marks = markCount{}
	}
	if p.facts.Seen.Ours() {
		p.track.saw(p.obj.GetGeneration(), from)
	} else {
		p.track.sawNothing()
	}
	p.facts.NewSpec = p.seen.Phase == decide.PhaseFailed && p.track.untried(p.obj.GetGeneration())
	if p.seen.compared() && p.facts.Seen.Ours() && from != decide.SourceMemory && !p.facts.Deleting {
		p.changes = append(p.changes, p.compareOutputs(ctx, p.seen.Details)...)
	}
	p.traceDrift(p.changes)
	p.classify()
	if !p.facts.Differs.Any() && (p.seen.Phase == decide.PhaseAvailable || p.seen.Phase == decide.PhaseDegraded) {
		p.track.inSync(p.obj.GetGeneration(), from)
		p.wished()
		if from != decide.SourceMemory && p.facts.Seen.Ours() && !p.facts.Deleting {
			p.lateInit()
		}
	}
}

// classify determines how the resource differs from what is wanted.
func (p *resource) classify() {
	if p.e.driver.Update == nil {
		p.changes = p.changes.Promote()
	}
	p.facts.Differs = decide.Differs{}
	for _, c := range p.changes {
		p.facts.Differs.InPlace = p.facts.Differs.InPlace || c.Effect == change.InPlace
		p.facts.Differs.Recreate = p.facts.Differs.Recreate || c.Effect == change.Recreate
		p.facts.Differs.Unsupported = p.facts.Differs.Unsupported || c.Effect == change.Unsupported
		p.facts.Differs.Ignored = p.facts.Differs.Ignored || c.Effect == change.Ignored
	}
}

// traceDrift traces differences, each once.
func (p *resource) traceDrift(changes change.List) {
	if p.e.driver.Update == nil {
		changes = changes.Promote()
	}
	for _, c := range changes {
		have, want := c.Shown()
		p.trace.Emit(trace.Drift{Path: c.Path, Want: want, Have: have, Effect: c.Effect.String()})
	}
}

// wished remembers what was wanted of a resource that matches the spec.
func (p *resource) wished() {
	if p.track.wish.generation != p.obj.GetGeneration() {
		p.track.wish = p.wanted
	}
}

// wants returns a hash of what obj, and what it refers to, ask for: of all that is missing from an
// empty resource. If the driver cannot compare with an empty one, only the generation tells wishes
// apart.
func (e *Engine) wants(obj Object) string {
	all, err := guarded("Compare", func() (change.List, error) { return e.driver.Compare(obj, nil), nil })
	if err != nil {
		return "unknown"
	}
	return cmp.Or(all.Hash(), "nothing")
}

// memory is what the API recently returned with its answers, if its reads never lag behind writes.
// The zero value is empty.
type memory struct {
	mu    sync.Mutex
	byUID map[types.UID]memorized
	swept time.Time
}

// memorized is the state of one available resource that is ours.
type memorized struct {
	seen Observation
	at   time.Time
	// generation is that of the spec with which the resource was compared.
	generation int64
	// endpoint is where the resource is.
	endpoint string
}

// put stores what the API returned, and drops entries older than life.
func (m *memory) put(uid types.UID, s memorized, life time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.at.Sub(m.swept) >= life {
		m.swept = s.at
		for k, old := range m.byUID {
			if s.at.Sub(old.at) >= life {
				delete(m.byUID, k)
			}
		}
	}
	if m.byUID == nil {
		m.byUID = map[types.UID]memorized{}
	}
	m.byUID[uid] = s
}

func (m *memory) of(uid types.UID) (memorized, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.byUID[uid]
	return s, known
}

func (m *memory) drop(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}

// moment is how long what the API returned may be acted on, and no longer than one call may take:
// an observation may be that old when it is acted on.
const moment = 10 * time.Second

func (e *Engine) moment() time.Duration { return min(e.callDeadline(), moment) }

// memorize stores what the API returned.
func (p *resource) memorize(o Observation, from decide.Source) {
	if p.e.grace() > 0 {
		return
	}
	if from != decide.SourceAnswer || o.Phase != decide.PhaseAvailable || p.facts.Seen.Owner != decide.OwnerUs || !p.facts.Seen.Marked {
		p.e.memory.drop(p.uid())
		return
	}
	p.e.memory.put(p.uid(), memorized{o, p.observedAt, p.obj.GetGeneration(), p.place.Endpoint}, p.e.moment())
}

// recall uses what the API returned a moment ago if the user has changed the spec or deleted the
// object since: the change then needs no observation of its own.
func (p *resource) recall(ctx context.Context) {
	m, known := p.e.memory.of(p.uid())
	asked := m.generation != p.obj.GetGeneration() || !p.obj.GetDeletionTimestamp().IsZero()
	if !known || !asked || time.Since(m.at) >= p.e.moment() || p.hangs != nil {
		return
	}
	p.useMemory(ctx, m)
}

// useMemory uses what the API returned a moment ago.
func (p *resource) useMemory(ctx context.Context, m memorized) {
	p.gather()
	obj, compare := p.lend(), p.comparer()
	s, err := pure(&p.e.abandoned, subjectOf(p.obj), "Compare", func() (state, error) { return compare(obj, m.seen) })
	if err != nil {
		return // it is observed, where the same mistake is reported
	}
	p.observedAt, p.rememberedAt = m.at, m.endpoint
	p.know(ctx, s, decide.SourceMemory)
}

// adoptFound makes durable the identity of the resource that was found by its mark.
func (p *resource) adoptFound(ctx context.Context) error {
	found := p.found[0]
	p.forgetApplied()
	r := p.record
	r.Given, r.Done = found.ID, time.Now()
	if n, err := strconv.ParseInt(found.Mark[record.MarkIncarnation], 10, 64); err == nil && n > r.Incarnation {
		r.Incarnation = n
	}
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record the id %q of the resource that was found: %w", found.ID, err)
	}
	p.track.adopted(r, time.Now())
	p.facts.Seen = decide.Seen{}
	return nil
}

// adopt makes durable that the observed resource is ours.
func (p *resource) adopt(ctx context.Context) error {
	switch {
	case p.e.options.AssignedIDs && p.id == "":
		return p.adoptFound(ctx)
	case p.record.Given != "":
		return p.sawGiven(ctx)
	}
	made := p.e.options.MarkLater && p.record.Exists() && p.facts.Seen.Owner == decide.OwnerUs
	if !made {
		p.forgetApplied()
	}
	r, _, err := p.e.newRecord(p.obj, p.place, p.id, max(1, p.record.Incarnation))
	if err != nil {
		return err
	}
	r = r.Follows(p.record)
	r.Done = time.Now()
	if p.e.options.AssignedIDs {
		r.ID, r.Given = p.named, p.id
	}
	if p.facts.Seen.Owner != decide.OwnerUs {
		r.Adopted = record.AdoptedFrom(p.seen.Mark)
	}
	r, value, err := record.Settle(r)
	if err != nil {
		return err
	}
	if err := p.persist(ctx, value); err != nil {
		return fmt.Errorf("record that the resource is ours: %w", err)
	}
	p.record, p.inherited = r, nil
	p.track.adopted(r, time.Now())
	p.facts.Seen = decide.Seen{}
	if !made {
		p.event("Normal", "Adopted", "adopted "+p.what())
	}
	return nil
}

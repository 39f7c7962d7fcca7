package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trimtab-dev/trimtab/trace"
)

// call makes one call of the external API and turns its answer into facts.
func (p *pass[T, C, O]) call(ctx context.Context, d Decision) {
	switch d.Action {
	case ActionObserve:
		p.observe(ctx)
	case ActionCreate:
		p.create(ctx)
	case ActionUpdate:
		p.update(ctx)
	case ActionDelete:
		p.remove(ctx)
	case ActionMark:
		p.putMark(ctx)
	case ActionUnmark:
		p.unmark(ctx)
	default:
	}
}

// ask makes a call under its own deadline, traces it and classifies its error. A call that
// changes the outside is not cut short by the end of the pass or of the process: its answer
// is worth more than the seconds.
func (p *pass[T, C, O]) ask(ctx context.Context, a Action, f func(context.Context) (string, error)) Class {
	if a.mutates() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.e.callDeadline())
	defer cancel()
	start := time.Now()
	result, err := guard(func() (string, error) { return f(ctx) })
	event := trace.Call{Op: a.String(), Target: p.id, Mutating: a.mutates(), Result: result, Took: time.Since(start)}
	p.facts.Last, p.last = Answer{Of: a}, classification{}
	if crash, is := errors.AsType[*panicked](err); is {
		p.loop.Log().Error(err, "a call of the driver panicked", "call", a.String(), "stack", string(crash.stack))
	}
	if err != nil {
		p.last = classify(err, p.e.classifier, a.mutates())
		p.facts.Last = Answer{Of: a, Failed: true, Class: p.last.class, Timeout: p.last.timeout}
		event.Err, event.Result = p.last.text, p.last.class.String()
	}
	if absent := p.last.absent && (a == ActionObserve || a == ActionDelete || a == ActionUnmark); absent {
		p.facts.Last, p.last = Answer{Of: a}, classification{absent: true}
		event.Err, event.Result = "", "Missing"
	}
	p.trace.Emit(event)
	return p.facts.Last.Class
}

// observe looks at the thing.
func (p *pass[T, C, O]) observe(ctx context.Context) {
	p.looked = time.Now()
	p.seen, p.changes, p.facts.Seen, p.facts.Differs = Observation[O]{}, nil, Seen{}, Differs{}
	p.ask(ctx, ActionObserve, func(ctx context.Context) (string, error) {
		o, err := p.e.driver.Observe(ctx, p.client, p.obj, p.ref())
		if err != nil {
			return "", err
		}
		p.seen = o
		return string(o.Phase), p.understand(o)
	})
	if p.facts.Last.Failed {
		return
	}
	if p.last.absent {
		p.seen = Missing[O]()
	}
	p.facts.Seen = Seen{Looked: true, Phase: p.seen.Phase, Recoverable: p.seen.Recoverable}
	if p.seen.Phase == PhaseMissing {
		p.track.sawNothing()
	} else {
		p.facts.Seen.Owner = p.claimant().ownerOf(p.seen.Mark)
	}
	if err := p.meetRivals(ctx); err != nil {
		p.facts.Seen = Seen{}
		p.last = classification{class: ClassTransient, text: plainText(err)}
		p.facts.Last = Answer{Of: ActionObserve, Failed: true, Class: ClassTransient}
		return
	}
	if p.seen.Phase != PhaseMissing {
		p.recognise()
	}
	p.reflect()
}

// understand compares what was observed with what is wanted. It is part of the call, so
// that a mistake of the driver is a failed look.
func (p *pass[T, C, O]) understand(o Observation[O]) error {
	switch o.Phase {
	case PhaseMissing, PhaseCreating, PhaseUpdating, PhaseDeleting:
		return nil
	case PhaseAvailable, PhaseDegraded, PhaseFailed:
		p.changes = p.e.driver.Compare(p.obj, o.Have)
		return nil
	}
	return Terminal(fmt.Errorf("the driver observed the unknown phase %q; this is a bug in %T", o.Phase, p.e.driver))
}

// meetRivals asks who else stands for the thing, unless its mark proves it to be ours or
// nothing depends on it.
func (p *pass[T, C, O]) meetRivals(ctx context.Context) error {
	if p.facts.Seen.Owner == OwnerUs || p.facts.Deleting && p.seen.Phase == PhaseMissing {
		return nil
	}
	return p.contest(ctx)
}

// recognise settles what the thing is to us and how it differs.
func (p *pass[T, C, O]) recognise() {
	if p.facts.Seen.ours() {
		p.track.saw()
	} else {
		p.track.sawNothing()
	}
	p.facts.NewSpec = p.seen.Phase == PhaseFailed && p.track.untried(p.obj.GetGeneration())
	if p.e.updater == nil {
		p.changes = promote(p.changes)
	}
	for _, c := range p.changes {
		p.facts.Differs.InPlace = p.facts.Differs.InPlace || c.Effect == InPlace
		p.facts.Differs.Recreate = p.facts.Differs.Recreate || c.Effect == Recreate
		p.facts.Differs.Unsupported = p.facts.Differs.Unsupported || c.Effect == Unsupported
		have, want := c.shown()
		p.trace.Emit(trace.Drift{Path: c.Path, Want: want, Have: have, Effect: c.Effect.String()})
	}
	if !p.facts.Differs.any() && (p.seen.Phase == PhaseAvailable || p.seen.Phase == PhaseDegraded) {
		p.track.inSync(p.obj.GetGeneration())
	}
}

// promote says of what only an Update could change that nothing can.
func promote(changes Changes) Changes {
	out := append(Changes(nil), changes...)
	for i := range out {
		if out[i].Effect == InPlace {
			out[i].Effect = Unsupported
		}
	}
	return out
}

func (p *pass[T, C, O]) claimant() claimant {
	c := claimant{
		mark: p.mark(), record: p.record, inherited: p.inherited, unmarked: p.e.options.Unmarked,
		untried: p.facts.Creation == CreationNone, adoption: p.settings.policy.Adoption, from: p.settings.from,
	}
	if p.anew {
		c.record = record{}
	}
	return c
}

func (p *pass[T, C, O]) mark() Mark { return p.markOf(p.obj, p.record.Incarnation) }

func (p *pass[T, C, O]) markOf(obj T, incarnation int64) Mark {
	gvk, err := p.loop.Client().GroupVersionKindFor(obj)
	if err != nil {
		gvk.Kind = p.e.kind
	}
	return markFor(obj, gvk, p.here.Cluster, max(1, incarnation))
}

// create starts the thing's life.
func (p *pass[T, C, O]) create(ctx context.Context) {
	p.facts.Did.Create = true
	in := CreateInput{Name: p.id, Mark: p.mark()}
	class := p.change(ctx, ActionCreate, func(ctx context.Context) error {
		_, err := p.e.driver.Create(ctx, p.client, p.obj, in)
		return err
	})
	p.track.createAnswered(p.facts.Last.Failed, class, time.Now())
	p.did.created = p.did.created || !p.facts.Last.Failed || !noEffect(class)
}

// update changes the thing.
func (p *pass[T, C, O]) update(ctx context.Context) {
	p.facts.Did.Update = true
	wanted, hash := p.changes, p.changes.With(InPlace).hash()
	p.change(ctx, ActionUpdate, func(ctx context.Context) error {
		_, err := p.e.updater.Update(ctx, p.client, p.obj, p.ref(), p.seen.Have, wanted)
		return err
	})
	if p.facts.Last.Failed {
		return
	}
	p.track.updateAnswered(p.obj.GetGeneration(), hash)
	p.track.changing = wanted.With(InPlace).String()
	p.repaired(wanted)
}

// remove starts the thing's end.
func (p *pass[T, C, O]) remove(ctx context.Context) {
	p.facts.Did.Delete = true
	wanted := p.changes
	p.change(ctx, ActionDelete, func(ctx context.Context) error {
		_, err := p.e.driver.Delete(ctx, p.client, p.obj, p.ref())
		return err
	})
	p.track.deleteAnswered(p.facts.Last.Failed)
	if !p.facts.Last.Failed {
		p.track.changing = wanted.With(Recreate).String()
		p.repaired(wanted)
	}
}

// putMark puts our mark on.
func (p *pass[T, C, O]) putMark(ctx context.Context) {
	p.facts.Did.Mark = true
	mark := p.mark()
	p.change(ctx, ActionMark, func(ctx context.Context) error {
		return p.e.marker.Mark(ctx, p.client, p.obj, p.ref(), mark)
	})
}

// unmark takes our mark off.
func (p *pass[T, C, O]) unmark(ctx context.Context) {
	p.facts.Did.Unmark = true
	p.change(ctx, ActionUnmark, func(ctx context.Context) error {
		return p.e.unmarker.Unmark(ctx, p.client, p.obj, p.ref())
	})
}

// change makes a call that changes the outside. What was seen before it is worth nothing
// after it.
func (p *pass[T, C, O]) change(ctx context.Context, a Action, f func(context.Context) error) Class {
	class := p.ask(ctx, a, func(ctx context.Context) (string, error) { return "ok", f(ctx) })
	p.facts.Seen, p.facts.Found = Seen{}, FoundNotAsked
	if !p.facts.Last.Failed {
		p.track.tried = p.obj.GetGeneration()
	}
	if p.facts.Last.Failed && (class == ClassInvalid || class == ClassTerminal) {
		p.track.refuse(a, p.basis(), errors.New(p.last.text))
	}
	return class
}

// reflect shows in status what was observed.
func (p *pass[T, C, O]) reflect() {
	external := p.obj.TrimtabExternal()
	if p.seen.Phase == PhaseMissing {
		external.External = nil
		return
	}
	if !p.facts.Seen.ours() {
		return
	}
	external.External = observed(p.id, p.seen.External, p.record.Incarnation)
	if p.e.reflector != nil && p.compared() {
		if _, err := guard(func() (struct{}, error) { p.e.reflector.Reflect(p.obj, p.seen.Have); return struct{}{}, nil }); err != nil {
			p.loop.Log().Error(err, "Reflect panicked; status is not complete")
		}
	}
}

// compared tells whether the thing was complete enough to be compared.
func (p *pass[T, C, O]) compared() bool {
	return p.seen.Phase == PhaseAvailable || p.seen.Phase == PhaseDegraded || p.seen.Phase == PhaseFailed
}

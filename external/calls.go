package external

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/trace"
)

// call makes one call of the external API and turns its answer into facts.
func (p *pass[T, C, O]) call(ctx context.Context, d decide.Decision) {
	switch d.Action {
	case decide.ActionObserve:
		p.observe(ctx)
	case decide.ActionCreate:
		p.create(ctx)
	case decide.ActionUpdate:
		p.update(ctx)
	case decide.ActionDelete:
		p.remove(ctx)
	case decide.ActionMark:
		p.putMark(ctx)
	case decide.ActionUnmark:
		p.unmark(ctx)
	default:
	}
}

// answer is what a call of the external API came to.
type answer struct {
	result string
	failed bool
	// broken is a panic of the driver in the call itself.
	broken *guard.PanicError
	classification
}

// ask makes a call under its own deadline, traces it and classifies its error. A call that
// changes the outside is not cut short by the end of the pass or of the process: its answer
// is worth more than the seconds. A call that does not return in its time is left behind with
// the copy of the object that it was given; it has failed, and may still take effect.
func (p *pass[T, C, O]) ask(ctx context.Context, a decide.Action, f func(context.Context, T) (string, error)) decide.Class {
	if a.Mutates() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.e.callDeadline())
	defer cancel()
	start, theirs, release := time.Now(), p.lend(), p.client.retain()
	ended := answer{failed: true, classification: classification{class: openEnded(a.Mutates()), text: errEnded.Error()}}
	got, late := await(ctx, ended, func(ctx context.Context) answer {
		defer release()
		result, err := guarded(methodOf(a), func() (string, error) { return f(ctx, theirs) })
		if err != nil {
			return p.e.explain(err, a)
		}
		return answer{result: result}
	})
	if late != nil {
		got = p.leave(a, late)
	}
	p.take(a, got)
	p.learn(a, start, got)
	p.e.count(a, got)
	event := trace.Call{Op: a.String(), Target: p.id, Mutating: a.Mutates(), Result: got.result, Took: time.Since(start)}
	if got.failed {
		event.Err, event.Result = got.text, got.class.String()
	}
	if p.last.absent {
		event.Result = "Missing"
	}
	p.trace.Emit(event)
	return p.facts.Last.Class
}

// explain classifies what a call came to.
func (e *engine[T, C, O]) explain(err error, a decide.Action) answer {
	got := answer{failed: true, classification: classify(err, e.classifier, a.Mutates())}
	got.broken, _ = errors.AsType[*guard.PanicError](err)
	if got.absent && (a == decide.ActionObserve || a == decide.ActionDelete || a == decide.ActionUnmark) {
		return answer{classification: classification{absent: true}}
	}
	return got
}

// leave leaves a call behind.
func (p *pass[T, C, O]) leave(a decide.Action, late <-chan answer) answer {
	left := &abroad{method: methodOf(a), action: a}
	p.e.left.leave(subjectOf(p.obj), left, func() lateAnswer {
		got := <-late
		return lateAnswer{failed: got.failed || got.absent, class: got.class, at: time.Now()}
	})
	p.out, p.hangs = left, left.err()
	c := classification{class: openEnded(a.Mutates()), timeout: true, text: p.hangs.Error()}
	return answer{failed: true, classification: c}
}

// learn tells those that share the client what an answer says of it and of the API.
func (p *pass[T, C, O]) learn(a decide.Action, began time.Time, got answer) {
	p.client.answered(got.failed, got.classification)
	kind := tells(a, got)
	if p.hangs != nil { // it is the driver that does not return
		kind = answerNothing
	}
	p.shared.scope.answered(subjectOf(p.obj).key, kind, began, time.Now(), got.after, cmp.Or(got.away, "its calls fail"))
}

// tells is what an answer says of the API as a whole.
func tells(a decide.Action, got answer) answerKind {
	if !got.failed {
		return answerWorks
	}
	switch got.class {
	case decide.ClassThrottled:
		return answerThrottled
	case decide.ClassDenied:
		return answerDenied
	case decide.ClassInvalid, decide.ClassConflict, decide.ClassTerminal, decide.ClassNotReady:
		return answerWorks
	case decide.ClassUnknown, decide.ClassTransient, decide.ClassAmbiguous:
	}
	if a == decide.ActionObserve && got.broken == nil {
		return answerAway
	}
	return answerNothing
}

// logPanic logs a panic of the driver, if there was one.
func (p *pass[T, C, O]) logPanic(crash *guard.PanicError) {
	if crash != nil {
		p.loop.Log().Error(crash, "the driver panicked", "method", crash.Method, "stack", string(crash.Stack))
	}
}

// take makes an answer a fact, and logs what is a mistake of the driver.
func (p *pass[T, C, O]) take(a decide.Action, got answer) {
	p.facts.Last, p.last = decide.Answer{Of: a}, got.classification
	if got.failed {
		p.facts.Last = decide.Answer{Of: a, Failed: true, Class: got.class, Timeout: got.timeout}
	}
	for _, crash := range append(got.classification.broken, got.broken) {
		p.logPanic(crash)
	}
}

// methodOf is the author's method behind a call.
func methodOf(a decide.Action) string {
	switch a {
	case decide.ActionObserve:
		return "Observe"
	case decide.ActionCreate:
		return "Create"
	case decide.ActionUpdate:
		return "Update"
	case decide.ActionDelete:
		return "Delete"
	case decide.ActionMark:
		return "Mark"
	case decide.ActionUnmark:
		return "Unmark"
	default:
		return a.String()
	}
}

// lend returns a copy of the object for the author's code, which may keep it for longer than
// the pass lasts. Calls of one pass share it as long as the object does not change.
func (p *pass[T, C, O]) lend() T {
	if !p.lent {
		p.copy, _ = p.obj.DeepCopyObject().(T)
		p.lent = true
	}
	return p.copy
}

func (p *pass[T, C, O]) claimant() decide.Claimant {
	c := decide.Claimant{
		Mark: p.mark(), Record: p.record, Inherited: p.inherited, Unmarked: p.e.options.Unmarked, Late: p.e.options.MarkLater,
		Untried: p.facts.Creation <= decide.CreationRefused, Adoption: p.settings.policy.Adoption, From: p.settings.from,
	}
	if p.anew {
		c.Record = record.Record{}
	}
	return c
}

func (p *pass[T, C, O]) mark() Mark { return p.markOf(p.obj, p.record.Incarnation) }

func (p *pass[T, C, O]) markOf(obj T, incarnation int64) Mark {
	gvk, err := p.loop.Client().GroupVersionKindFor(obj)
	if err != nil {
		gvk.Kind = p.e.kind
	}
	return record.MarkFor(obj, gvk, p.here.Cluster, max(1, incarnation))
}

// create starts the thing's life. That it is called is noted before: whatever the author's
// code does, a create is not forgotten.
func (p *pass[T, C, O]) create(ctx context.Context) {
	p.facts.Did.Create = true
	driver, r := p.e.driver, CreateRequest[T, C]{Client: p.client.client, ID: p.id, Incarnation: p.incarnation(), Mark: p.mark()}
	p.track.createBegins(time.Now())
	given := &assigned{}
	p.track.given = given
	compare := p.comparer()
	var got *state[O]
	class := p.change(ctx, decide.ActionCreate, func(ctx context.Context, obj T) error {
		r.Object = obj
		response, err := driver.Create(ctx, r)
		given.take(r.ID, response.ID)
		if err == nil {
			got = returned(compare, obj, response.Observed)
		}
		return err
	})
	p.track.createAnswered(p.facts.Last.Failed, class, time.Now())
	if p.facts.Last.Failed && decide.NoEffect(class) {
		p.facts.Create, p.refused = p.facts.Last, p.last
	}
	p.did.created = p.did.created || !p.facts.Last.Failed || !decide.NoEffect(class)
	p.answered(ctx, got)
}

// update changes the thing.
func (p *pass[T, C, O]) update(ctx context.Context) {
	p.facts.Did.Update = true
	wanted, hash := p.changes, p.changes.With(InPlace).hash()
	updater, r := p.e.updater, UpdateRequest[T, C, O]{
		Client: p.client.client, ID: p.id, Incarnation: p.incarnation(), Have: p.seen.Have, Changes: wanted,
	}
	given := &assigned{}
	p.track.given = given
	compare := p.comparer()
	var got *state[O]
	p.change(ctx, decide.ActionUpdate, func(ctx context.Context, obj T) error {
		r.Object = obj
		response, err := updater.Update(ctx, r)
		given.take(r.ID, response.ID)
		if err == nil {
			got = returned(compare, obj, response.Observed)
		}
		return err
	})
	if p.facts.Last.Failed {
		return
	}
	p.track.updateAnswered(p.obj.GetGeneration(), hash)
	p.track.changing = wanted.With(InPlace).String()
	p.repaired(wanted.With(InPlace))
	p.track.wish = p.wanted
	p.answered(ctx, got)
}

// remove starts the thing's end.
func (p *pass[T, C, O]) remove(ctx context.Context) {
	p.facts.Did.Delete = true
	wanted := p.changes
	driver, r := p.e.driver, DeleteRequest[T, C]{Client: p.client.client, ID: p.id, Incarnation: p.incarnation()}
	var got *state[O]
	p.change(ctx, decide.ActionDelete, func(ctx context.Context, obj T) error {
		r.Object = obj
		response, err := driver.Delete(ctx, r)
		if response.Gone {
			got = &state[O]{Observation: Missing[O]()}
		}
		return err
	})
	p.track.deleteAnswered(p.facts.Last.Failed || p.last.absent)
	if !p.facts.Last.Failed {
		p.track.recreating(p.obj.GetGeneration(), p.record.Incarnation, wanted.With(Recreate).hash())
		p.track.changing = wanted.With(Recreate).String()
		p.repaired(wanted.With(Recreate))
	}
	p.answered(ctx, got)
}

// putMark puts our mark on.
func (p *pass[T, C, O]) putMark(ctx context.Context) {
	p.facts.Did.Mark = true
	marker, r := p.e.marker, MarkRequest[T, C]{Client: p.client.client, ID: p.id, Incarnation: p.incarnation(), Mark: p.mark()}
	p.change(ctx, decide.ActionMark, func(ctx context.Context, obj T) error {
		r.Object = obj
		_, err := marker.Mark(ctx, r)
		return err
	})
	if !p.facts.Last.Failed {
		p.track.markAnswered(p.obj.GetGeneration(), time.Now())
	}
}

// unmark takes our mark off.
func (p *pass[T, C, O]) unmark(ctx context.Context) {
	p.facts.Did.Unmark = true
	unmarker, r := p.e.unmarker, UnmarkRequest[T, C]{Client: p.client.client, ID: p.id, Incarnation: p.incarnation()}
	p.change(ctx, decide.ActionUnmark, func(ctx context.Context, obj T) error {
		r.Object = obj
		_, err := unmarker.Unmark(ctx, r)
		return err
	})
}

// change makes a call that changes the outside. What was seen before it is worth nothing
// after it.
func (p *pass[T, C, O]) change(ctx context.Context, a decide.Action, f func(context.Context, T) error) decide.Class {
	p.e.memory.drop(p.uid())
	class := p.ask(ctx, a, func(ctx context.Context, obj T) (string, error) { return "ok", f(ctx, obj) })
	p.facts.Seen, p.facts.Found = decide.Seen{}, decide.FoundNotAsked
	if !p.facts.Last.Failed {
		p.track.tried = p.obj.GetGeneration()
	}
	if p.facts.Last.Failed && (class == decide.ClassInvalid || class == decide.ClassTerminal) {
		p.track.refuse(a, p.basis(), class, errors.New(p.last.text))
	}
	return class
}

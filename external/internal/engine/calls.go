package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/trace"
)

// call makes one call of the external API and turns its answer into facts.
func (p *pass) call(ctx context.Context, d decide.Decision) {
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

// answer is the outcome of a call of the external API.
type answer struct {
	result string
	// failure is why the call failed; nil if it succeeded.
	failure *classification
	// absent reports whether the API says that the resource does not exist.
	absent bool
}

// text is why the call failed, for users.
func (a answer) text() string {
	if a.failure == nil {
		return ""
	}
	return a.failure.text
}

// after is how long the API asked to wait; 0 if it did not.
func (a answer) after() time.Duration {
	if a.failure == nil {
		return 0
	}
	return a.failure.after
}

// ask makes a call under its own deadline, traces it and classifies its error. A call that may
// change the external resource is not cut short by the end of the pass or of the process: its
// answer is worth the few seconds. A call that does not return in time is abandoned together with
// the copy of the object that it was given; it has failed, and may still take effect.
func (p *pass) ask(ctx context.Context, a decide.Action, f func(context.Context, Object) (string, error)) decide.Class {
	if a.Mutates() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.e.callDeadline())
	defer cancel()
	start, theirs, client := time.Now(), p.lend(), p.client
	client.retain()
	got, late := await(ctx, func() answer { return endedCall(a) }, func() answer {
		defer client.release()
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
	if got.failure != nil {
		event.Err, event.Result = got.failure.text, got.failure.class.String()
	}
	if p.last.absent {
		event.Result = "Missing"
	}
	p.trace.Emit(event)
	return p.facts.Last.Class
}

// endedCall is the answer to a call that ended its goroutine.
func endedCall(a decide.Action) answer {
	return answer{failure: &classification{class: openEnded(a.Mutates()), text: errEnded.Error()}}
}

// explain classifies an error of a call.
func (e *Engine) explain(err error, a decide.Action) answer {
	c := classify(err, e.driver.Errors, a.Mutates())
	if c.absent && (a == decide.ActionObserve || a == decide.ActionDelete || a == decide.ActionUnmark) {
		return answer{absent: true}
	}
	c.crash, _ = errors.AsType[*guard.PanicError](err)
	return answer{failure: &c, absent: c.absent}
}

// leave abandons a call.
func (p *pass) leave(a decide.Action, late <-chan answer) answer {
	left := &abroad{method: methodOf(a), action: a}
	p.e.left.leave(subjectOf(p.obj), left, func() lateAnswer {
		got := <-late
		late := lateAnswer{failed: got.failure != nil || got.absent, at: time.Now()}
		if got.failure != nil {
			late.class = got.failure.class
		}
		return late
	})
	p.out, p.hangs = left, left.err()
	return answer{failure: &classification{class: openEnded(a.Mutates()), timeout: true, text: p.hangs.Error()}}
}

// learn passes on to the other users of the client what an answer shows about it and about the
// API.
func (p *pass) learn(a decide.Action, began time.Time, got answer) {
	p.client.answered(got.failure)
	kind, away := tells(a, got.failure), ""
	if p.hangs != nil { // the driver hangs, not the API
		kind = answerNothing
	}
	if got.failure != nil {
		away = cmp.Or(got.failure.away, "its calls fail")
	}
	p.shared.scope.answered(subjectOf(p.obj).key, kind, began, time.Now(), got.after(), away)
}

// tells returns what an answer shows about the API as a whole.
func tells(a decide.Action, failure *classification) answerKind {
	if failure == nil {
		return answerWorks
	}
	switch failure.class {
	case decide.ClassThrottled:
		return answerThrottled
	case decide.ClassDenied:
		return answerDenied
	case decide.ClassInvalid, decide.ClassConflict, decide.ClassTerminal, decide.ClassNotReady:
		return answerWorks
	case decide.ClassUnknown, decide.ClassTransient, decide.ClassAmbiguous:
	}
	if a == decide.ActionObserve && failure.crash == nil {
		return answerAway
	}
	return answerNothing
}

// logPanic logs a panic of the driver, if there was one.
func (p *pass) logPanic(crash *guard.PanicError) {
	if crash != nil {
		p.run.Log().Error(crash, "the driver panicked", "method", crash.Method, "stack", string(crash.Stack))
	}
}

// take turns an answer into a fact, and logs mistakes of the driver.
func (p *pass) take(a decide.Action, got answer) {
	p.facts.Last, p.last = decide.Answer{Of: a}, got
	c := got.failure
	if c == nil {
		return
	}
	p.facts.Last = decide.Answer{Of: a, Failed: true, Class: c.class, Timeout: c.timeout}
	for _, crash := range append(c.broken, c.crash) {
		p.logPanic(crash)
	}
}

// methodOf returns the driver's method behind a call.
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

// lend returns a copy of the object for the driver, which may keep it beyond the end of the pass.
// Calls of one pass share it as long as the object does not change.
func (p *pass) lend() Object {
	if !p.lent {
		p.copy, _ = p.obj.DeepCopyObject().(Object)
		p.lent = true
	}
	return p.copy
}

func (p *pass) claimant() decide.Claimant {
	c := decide.Claimant{
		Mark: p.mark(), Record: p.record, Unmarked: p.e.options.Unmarked, Late: p.e.options.MarkLater,
		Untried: p.facts.Creation <= decide.CreationRefused, Adoption: p.settings.policy.Adoption, From: p.settings.from,
	}
	if p.inherited != nil {
		c.Inherited = *p.inherited
	}
	if p.startsOver {
		c.Record = record.Record{}
	}
	return c
}

func (p *pass) mark() record.Mark { return p.markOf(p.obj, p.record.Incarnation) }

func (p *pass) markOf(obj Object, incarnation int64) record.Mark {
	gvk, err := p.run.Client().GroupVersionKindFor(obj)
	if err != nil {
		gvk.Kind = p.e.kind
	}
	return record.MarkFor(obj, gvk, p.here.Cluster, max(1, incarnation))
}

// request returns the request of a call; the caller fills in the object.
func (p *pass) request() Request {
	return Request{Client: p.client.client, ID: p.id, Incarnation: p.incarnation()}
}

// create creates the resource. The call is noted before it is made: whatever the driver does, a
// create is not forgotten.
func (p *pass) create(ctx context.Context) {
	p.facts.Did.Create = true
	driver, r := &p.e.driver, p.request()
	r.Mark = p.mark().Labels()
	p.track.createBegins(time.Now())
	given := &assigned{}
	p.track.given = given
	compare := p.comparer()
	var got returnedState
	class := p.change(ctx, decide.ActionCreate, func(ctx context.Context, obj Object) error {
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
		p.facts.Create, p.refused = p.facts.Last, p.last.text()
	}
	p.did.created = p.did.created || !p.facts.Last.Failed || !decide.NoEffect(class)
	if !p.facts.Last.Failed { // a call that was left behind may still write got
		p.answered(ctx, got)
	}
}

// update changes the resource.
func (p *pass) update(ctx context.Context) {
	p.facts.Did.Update = true
	wanted, hash := p.changes, p.changes.With(change.InPlace).Hash()
	driver, r := &p.e.driver, p.request()
	r.Have, r.Changes = p.seen.Have, wanted
	given := &assigned{}
	p.track.given = given
	compare := p.comparer()
	var got returnedState
	p.change(ctx, decide.ActionUpdate, func(ctx context.Context, obj Object) error {
		r.Object = obj
		response, err := driver.Update(ctx, r)
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
	p.track.changing = wanted.With(change.InPlace).String()
	p.repaired(wanted.With(change.InPlace))
	p.track.wish = p.wanted
	p.answered(ctx, got)
}

// remove deletes the resource.
func (p *pass) remove(ctx context.Context) {
	p.facts.Did.Delete = true
	wanted := p.changes
	driver, r := &p.e.driver, p.request()
	var got returnedState
	p.change(ctx, decide.ActionDelete, func(ctx context.Context, obj Object) error {
		r.Object = obj
		response, err := driver.Delete(ctx, r)
		if response.Gone && err == nil {
			got.state = &state{Observation: missing()}
		}
		return err
	})
	p.track.deleteAnswered(p.facts.Last.Failed || p.last.absent)
	if !p.facts.Last.Failed {
		p.track.recreating(p.obj.GetGeneration(), p.record.Incarnation, wanted.With(change.Recreate).Hash())
		p.track.changing = wanted.With(change.Recreate).String()
		p.repaired(wanted.With(change.Recreate))
		if got.state != nil {
			p.track.answeredGone()
		}
		p.answered(ctx, got)
	}
}

// putMark sets our mark.
func (p *pass) putMark(ctx context.Context) {
	p.facts.Did.Mark = true
	driver, r := &p.e.driver, p.request()
	r.Mark = p.mark().Labels()
	p.change(ctx, decide.ActionMark, func(ctx context.Context, obj Object) error {
		r.Object = obj
		return driver.Mark(ctx, r)
	})
	if !p.facts.Last.Failed {
		p.track.markAnswered(p.obj.GetGeneration(), time.Now())
	}
}

// unmark removes our mark.
func (p *pass) unmark(ctx context.Context) {
	p.facts.Did.Unmark = true
	driver, r := &p.e.driver, p.request()
	p.change(ctx, decide.ActionUnmark, func(ctx context.Context, obj Object) error {
		r.Object = obj
		return driver.Unmark(ctx, r)
	})
}

// change makes a call that may change the external resource, which invalidates what was observed
// before.
func (p *pass) change(ctx context.Context, a decide.Action, f func(context.Context, Object) error) decide.Class {
	p.e.memory.drop(p.uid())
	class := p.ask(ctx, a, func(ctx context.Context, obj Object) (string, error) { return "ok", f(ctx, obj) })
	p.facts.Seen, p.facts.Found = decide.Seen{}, decide.FoundNotAsked
	if !p.facts.Last.Failed {
		p.track.tried = p.obj.GetGeneration()
	}
	if p.facts.Last.Failed && (class == decide.ClassInvalid || class == decide.ClassTerminal) {
		p.track.refuse(a, p.basis(), class, errors.New(p.last.text()))
	}
	return class
}

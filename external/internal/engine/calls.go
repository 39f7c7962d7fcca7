package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// caller calls the external API and takes in the answers.
type caller struct {
	resource

	// refused is why the create was refused in this pass.
	refused string
	// created reports whether this pass created the resource, or may have.
	created bool
	// pollAfter is when to ask about the operation that goes on, as the API suggests; 0 if it does not.
	pollAfter time.Duration
}

// call makes one call of the external API and turns its answer into facts.
func (p *caller) call(ctx context.Context, d decide.Decision) {
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
	case decide.ActionFindOwned:
		p.find(ctx)
	case decide.ActionPoll:
		p.poll(ctx)
	case decide.ActionCancel:
		p.cancel(ctx)
	case decide.ActionFinish:
		p.finish(ctx)
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
func (p *caller) ask(ctx context.Context, a decide.Action, f func(context.Context, Object) (string, error)) decide.Class {
	if a.Mutates() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, p.e.callDeadline())
	defer cancel()
	start, theirs, client := time.Now(), p.lend(), p.client
	client.retain()
	secrets := p.secrets()
	got, late := await(ctx, func() answer { return endedCall(a) }, func() answer {
		defer client.release()
		result, err := guarded(methodOf(a), func() (string, error) { return f(ctx, theirs) })
		if err != nil {
			return p.e.explain(err, a, secrets)
		}
		return answer{result: result}
	})
	if late != nil {
		got = p.abandon(a, late)
	}
	p.take(a, got)
	p.learn(a, start, got)
	p.e.count(a, got)
	event := trace.Call{Op: a.String(), Target: cmp.Or(p.id, p.named), Mutating: a.Mutates(), Result: got.result, Took: time.Since(start)}
	if got.failure != nil {
		event.Err, event.Result = got.failure.text, got.failure.class.String()
	}
	if p.last.absent {
		event.Result = "Missing"
	}
	p.trace.Emit(event)
	return p.facts.Last.Class
}

// secrets are values that must not appear in messages.
func (p *caller) secrets() []string {
	all := slices.Clone(p.client.hides())
	for _, password := range p.passwords {
		if len(password) >= shortestSecret {
			all = append(all, password)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	return all
}

// endedCall is the answer to a call that ended its goroutine.
func endedCall(a decide.Action) answer {
	return answer{failure: &classification{class: openEnded(a.Mutates()), text: errEnded.Error()}}
}

// explain classifies an error of a call, without the secrets in its text.
func (e *Engine) explain(err error, a decide.Action, secrets []string) answer {
	c := classify(err, e.driver.Errors, a.Mutates())
	c.text = hide(c.text, secrets)
	if c.absent && (a == decide.ActionObserve || a == decide.ActionDelete || a == decide.ActionUnmark || a == decide.ActionPoll) {
		return answer{absent: true}
	}
	if c.crash, _ = errors.AsType[*guard.PanicError](err); c.crash != nil && len(secrets) > 0 {
		hidden := *c.crash
		hidden.Value = hide(fmt.Sprint(hidden.Value), secrets)
		c.crash = &hidden
	}
	return answer{failure: &c, absent: c.absent}
}

// abandon abandons a call.
func (p *caller) abandon(a decide.Action, late <-chan answer) answer {
	left := &abandonedCall{method: methodOf(a), action: a}
	p.e.abandoned.add(subjectOf(p.obj), left, func() lateAnswer {
		got := <-late
		late := lateAnswer{failed: got.failure != nil || got.absent, at: time.Now()}
		if got.failure != nil {
			late.class = got.failure.class
		}
		return late
	})
	p.abandoned, p.hangs = left, left.err()
	return answer{failure: &classification{class: openEnded(a.Mutates()), timeout: true, text: p.hangs.Error()}}
}

// learn passes on to the other users of the client what an answer shows about it and about the
// API.
func (p *caller) learn(a decide.Action, began time.Time, got answer) {
	if a == decide.ActionFinish { // it calls the cluster
		return
	}
	p.client.answered(got.failure)
	kind, away := answerKindOf(a, got.failure), ""
	if p.hangs != nil { // the driver hangs, not the API
		kind = answerNothing
	}
	if got.failure != nil {
		away = cmp.Or(got.failure.unreachable, "its calls fail")
	}
	p.shared.scope.answered(subjectOf(p.obj).key, kind, began, time.Now(), got.after(), away)
}

// answerKindOf returns what an answer shows about the API as a whole.
func answerKindOf(a decide.Action, failure *classification) answerKind {
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
	if (a == decide.ActionObserve || a == decide.ActionPoll) && failure.crash == nil {
		return answerUnreachable
	}
	return answerNothing
}

// take turns an answer into a fact, and logs mistakes of the driver.
func (p *caller) take(a decide.Action, got answer) {
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
	case decide.ActionFindOwned:
		return "Find"
	case decide.ActionPoll:
		return "Poll"
	case decide.ActionCancel:
		return "Cancel"
	case decide.ActionFinish:
		return "Finish"
	default:
		return a.String()
	}
}

// request returns the request of a call; the caller fills in the object.
func (p *caller) request() Request {
	return Request{Client: p.client.client, ID: p.id, Incarnation: p.incarnation(), Dependencies: p.needs}
}

// observe reads the external resource.
func (p *caller) observe(ctx context.Context) {
	p.forget()
	p.observedAt = time.Now()
	var got state
	compare := p.comparer()
	driver, r := &p.e.driver, p.request()
	p.ask(ctx, decide.ActionObserve, func(ctx context.Context, obj Object) (string, error) {
		r.Object = obj
		o, err := driver.Observe(ctx, r)
		if err != nil {
			return "", err
		}
		got, err = compare(obj, o)
		return string(o.Phase), err
	})
	if p.facts.Last.Failed { // an abandoned call may still write to got
		return
	}
	if p.last.absent {
		got.Observation, got.changes = missing(), nil
	}
	p.know(ctx, got, decide.SourceRead)
}

// create creates the resource. The call is noted before it is made: whatever the driver does, a
// create is not forgotten.
func (p *caller) create(ctx context.Context) {
	p.facts.Did.Create = true
	driver, r := &p.e.driver, p.request()
	r.Mark, r.Passwords, r.Key = p.mark().Labels(), p.passwords, p.token()
	known := r.ID
	if p.e.options.AssignedIDs {
		known, r.ID = "", p.named
	}
	brought := &handed{}
	p.track.createBegins(time.Now())
	applied := p.toApply()
	p.track.followed.applied = "" // an answer that comes too late says nothing about an earlier spec
	given, compare := p.expect(record.CallCreate), p.comparerAfter(applied)
	var got returnedState
	var after time.Duration
	class := p.change(ctx, decide.ActionCreate, func(ctx context.Context, obj Object) error {
		r.Object = obj
		response, err := driver.Create(ctx, r)
		if given.take(known, response.ID); err != nil {
			return err
		}
		brought.take(response.Details)
		got, after = returned(compare, obj, response.Observed), response.Operation.After
		if got.flaw = cmp.Or(p.e.accept(given, response.Operation), got.flaw); given.begins() {
			return nil
		}
		return p.e.fitAssigned(response.ID)
	})
	p.track.createAnswered(p.facts.Last.Failed, class, time.Now())
	if p.facts.Last.Failed && decide.NoEffect(class) {
		p.facts.Create, p.refused = p.facts.Last, p.last.text()
	}
	p.created = p.created || !p.facts.Last.Failed || !decide.NoEffect(class)
	if p.track.outputs.handed = brought; !p.facts.Last.Failed {
		p.handOver(ctx, true)
	}
	if !p.facts.Last.Failed { // an abandoned call may still write got
		if p.track.followed.applied = applied; !p.begun(after) {
			p.wasGiven(applied)
		}
		p.answered(ctx, got)
	}
}

// update changes the resource.
func (p *caller) update(ctx context.Context) {
	p.facts.Did.Update, p.track.occurred.Updating = true, true
	wanted, hash := p.changes, p.changes.With(change.InPlace).Hash()
	driver, r := &p.e.driver, p.request()
	r.Have, r.Changes, r.Passwords = p.seen.Have, wanted, p.passwords
	applied := p.toApply()
	p.track.followed.applied = "" // as in create
	given, compare := p.expect(record.CallUpdate), p.comparerAfter(applied)
	var got returnedState
	var after time.Duration
	p.change(ctx, decide.ActionUpdate, func(ctx context.Context, obj Object) error {
		r.Object = obj
		response, err := driver.Update(ctx, r)
		if given.take(r.ID, response.ID); err == nil {
			got, after = returned(compare, obj, response.Observed), response.Operation.After
			got.flaw = cmp.Or(p.e.accept(given, response.Operation), got.flaw)
		}
		return err
	})
	if p.facts.Last.Failed {
		return
	}
	if p.track.followed.hash, p.track.followed.applied = hash, applied; !p.begun(after) {
		p.track.updateAnswered(p.obj.GetGeneration(), hash)
		p.wasGiven(applied)
	}
	p.track.changing = wanted.With(change.InPlace).String()
	p.repaired(wanted.With(change.InPlace))
	p.track.wish = p.wanted
	if len(withoutPasswords(wanted)) < len(wanted) {
		p.handOver(ctx, true)
	}
	p.answered(ctx, got)
}

// remove deletes the resource.
func (p *caller) remove(ctx context.Context) {
	p.facts.Did.Delete = true
	p.track.occurred.Updating = p.track.occurred.Updating || !p.facts.Deleting // it is recreated
	wanted := p.changes
	driver, r := &p.e.driver, p.request()
	given := p.expect(record.CallDelete)
	var got returnedState
	var after time.Duration
	p.change(ctx, decide.ActionDelete, func(ctx context.Context, obj Object) error {
		r.Object = obj
		response, err := driver.Delete(ctx, r)
		if err == nil {
			got.flaw, after = p.e.accept(given, response.Operation), response.Operation.After
		}
		if response.Gone && err == nil && !given.begins() {
			got.state = &state{Observation: missing()}
		}
		return err
	})
	if c := p.facts.Last.Class; p.facts.Last.Failed && (c == decide.ClassConflict || c == decide.ClassNotReady) {
		p.track.followed.blocks = p.running()
	}
	p.track.deleteAnswered(p.facts.Last.Failed || p.last.absent)
	if !p.facts.Last.Failed {
		p.track.recreating(p.obj.GetGeneration(), p.record.Incarnation, wanted.With(change.Recreate).Hash())
		p.track.changing = wanted.With(change.Recreate).String()
		p.repaired(wanted.With(change.Recreate))
		if got.state != nil {
			p.track.answeredGone()
		}
		p.begun(after)
		p.answered(ctx, got)
	}
}

// putMark sets our mark.
func (p *caller) putMark(ctx context.Context) {
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
func (p *caller) unmark(ctx context.Context) {
	p.facts.Did.Unmark = true
	driver, r := &p.e.driver, p.request()
	p.change(ctx, decide.ActionUnmark, func(ctx context.Context, obj Object) error {
		r.Object = obj
		return driver.Unmark(ctx, r)
	})
}

// change makes a call that may change the external resource, which invalidates what was observed
// before.
func (p *caller) change(ctx context.Context, a decide.Action, f func(context.Context, Object) error) decide.Class {
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

// connected obtains the client of the external API and reports whether the pass can use it.
func (p *caller) connected(ctx context.Context) bool {
	began := time.Now()
	if p.client == nil {
		p.client, p.connect = p.e.clientOf(ctx, p.shared, p.login, p.run.Live())
		if p.connect != nil && p.facts.Deleting { // the client that there is still serves to delete
			if k, err := p.shared.connection.present(); err == nil {
				p.client, p.connect = k, nil
			}
		}
	}
	if p.connect != nil {
		if !isIncomplete(p.connect) {
			p.shared.scope.answered(subjectOf(p.obj).key, answerUnreachable, began, time.Now(), 0, decide.Unconnected+p.connect.Error())
		}
		p.facts.Scope = decide.ScopeUnconnectable
		p.trace.Emit(trace.Call{Op: "connect", Err: plain.Error(p.connect)})
		return false
	}
	return p.located(p.client.endpoint)
}

// located records the endpoint that the client talks to and reports whether the resource is there.
func (p *caller) located(endpoint string) bool {
	if p.place.Endpoint == endpoint {
		return p.facts.Record.Trouble != decide.TroubleEndpoint
	}
	p.place.Endpoint = endpoint
	before := p.id
	if p.inherited != nil && !p.inherited.AppliesAt(p.place) {
		p.inherited = nil
		p.identify()
	}
	p.gather()
	if p.facts.Seen.Source == decide.SourceMemory && (p.startsOver || endpoint != p.rememberedAt) { // it was there, not here
		p.forget()
		return false
	}
	return p.facts.Record.Trouble != decide.TroubleEndpoint && p.id == before
}

// note makes durable what a call has shown.
func (p *caller) note(ctx context.Context, a decide.Action) error {
	switch a {
	case decide.ActionObserve:
		return errors.Join(p.pin(ctx), p.keepAssigned(ctx))
	case decide.ActionUpdate, decide.ActionDelete:
		return p.keepAssigned(ctx)
	case decide.ActionCreate, decide.ActionPoll:
		return errors.Join(p.keepAssigned(ctx), p.withdraw(ctx))
	default:
		return nil
	}
}

// repaired emits an event if somebody else had changed the resource: it differed although this
// process had seen it match this very spec, and what is wanted has not changed since.
func (p *caller) repaired(differed change.List) {
	differed = withoutPasswords(differed)
	if p.facts.Deleting || p.created || !p.track.wish.same(p.wanted) || !differed.Visible() {
		return
	}
	p.event("Normal", "DriftRepaired", fmt.Sprintf("%s was changed outside the operator; corrected: %s", p.what(), differed))
}

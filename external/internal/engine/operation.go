package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Operation is a change that goes on after its call was answered.
type Operation struct {
	// ID is what the API calls it; empty if there is none.
	ID string
	// After is when to ask about it first; 0 if the API does not say.
	After time.Duration
}

// Polled is what the API says about an operation.
type Polled struct {
	// Done reports whether it has ended, Err why it failed.
	Done bool
	Err  error
	// ID is the identity that the API assigned to the resource, as in [Response].
	ID       string
	Observed *Observation
	Details  map[string][]byte
	// After is when to ask again; 0 if the API does not say.
	After time.Duration
}

// assigned are the identities that an answer has: of the resource, and of the operation that goes on. The answer may come
// after the call was abandoned.
type assigned struct {
	id atomic.Pointer[string]
	// operation is that of an accepted change, the zero value if the API has done it; nil before it is accepted, and
	// once it is recorded.
	operation atomic.Pointer[record.Operation]
	// incarnation is the one that has them; generation is the one that the change is for.
	incarnation, generation int64
	call                    record.Call
}

// expect returns what takes in the identities of the answer to a call.
func (p *recording) expect(call record.Call) *assigned {
	p.track.given = &assigned{incarnation: p.record.Incarnation, generation: p.obj.GetGeneration(), call: call}
	return p.track.given
}

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

// accept notes that the API accepted the change. An operation that cannot be followed counts as none, so that the resource
// is observed; the error says why.
func (e *Engine) accept(a *assigned, o Operation) error {
	var flaw error
	switch {
	case o.ID == "":
	case e.driver.Poll == nil:
		flaw = fmt.Errorf("the driver returned an operation, but has no method Poll; this is a bug in %s", e.driver.Type)
	case !record.FitsOperation(o.ID):
		flaw = fmt.Errorf("the driver returned an operation whose id has %d bytes, more than the %d that can be recorded, or is no text", len(o.ID), record.LongestID)
	default:
		a.operation.Store(&record.Operation{ID: o.ID, Call: a.call, At: time.Now().UTC(), Generation: a.generation})
		return nil
	}
	a.operation.Store(&record.Operation{})
	return flaw
}

// followed is what this process knows of operations on one resource.
type followed struct {
	// ended is the last one that has ended, and failure why it failed; nil if it did not.
	ended   record.Operation
	failure *classification
	// canceled is the last one that the API was asked to cancel. blocks is the last one during which the API refused to
	// delete the resource.
	canceled, blocks record.Operation
	// hash identifies the differences that an update in progress is to remove, and applied is what it is to be given.
	hash, applied string
	// spent reports whether the creation of the present incarnation failed after it had been accepted, and the API
	// assigns ids.
	spent bool
}

// refused reports whether the record has yet to say that the operation failed that was to create the resource.
func (f *followed) refused(r record.Record) bool {
	return f.failure != nil && f.ended.Call == record.CallCreate && f.ended.Is(r.Operation) && r.Progress() == record.MarkerPending
}

// running is the operation that goes on; the zero value if none does. An object that was restored from a backup goes on with
// the one that it had. The operation of an object without a record is remembered at least.
func (p *recording) running() record.Operation {
	op := p.record.Operation
	if !p.record.Exists() && p.inherited != nil {
		op = p.inherited.Operation
	}
	if given := p.track.given; !p.record.Exists() && given != nil && given.incarnation == 0 && given.operation.Load() != nil {
		op = *given.operation.Load()
	}
	if op.ID != "" && p.e.driver.Poll != nil && !p.track.followed.ended.Is(op) {
		return op
	}
	return record.Operation{}
}

// gatherOperation gathers the facts about the operation that goes on.
func (p *recording) gatherOperation() {
	op, f := p.running(), &p.facts.Op
	f.State, f.Of = decide.OpNone, callOf(op.Call)
	f.Cancellable = p.e.driver.Cancel != nil && !p.track.followed.canceled.Is(op)
	p.facts.Spent = p.track.followed.spent
	p.facts.SinceLost, p.facts.LostGrace = time.Since(p.track.doubt), p.e.lostGrace()
	if f.Blocks = false; op.ID == "" {
		return
	}
	f.Blocks = p.track.followed.blocks.Is(op)
	f.State = decide.OpRunning
	if limit := p.e.operationLimit(); limit > 0 && time.Since(op.At) > limit {
		f.State = decide.OpOverdue
	}
}

func callOf(c record.Call) decide.Action {
	switch c {
	case record.CallCreate:
		return decide.ActionCreate
	case record.CallUpdate:
		return decide.ActionUpdate
	case record.CallDelete:
		return decide.ActionDelete
	}
	return decide.ActionNone
}

// operationLimit is how long an operation may take; 0 means for ever.
func (e *Engine) operationLimit() time.Duration {
	switch d := e.options.OperationDeadline; {
	case d < 0:
		return 0
	case d == 0:
		return time.Hour
	default:
		return d
	}
}

// lostGrace is for how long a create whose answer was lost may go on in an operation of which nothing can be seen. It is 0 if
// the author has said how soon the API shows what it creates.
func (e *Engine) lostGrace() time.Duration {
	if e.driver.Poll == nil || e.options.CreateGrace != 0 {
		return 0
	}
	return cmp.Or(e.operationLimit(), time.Hour)
}

// begins reports whether the answer began an operation.
func (a *assigned) begins() bool {
	op := a.operation.Load()
	return op != nil && op.ID != ""
}

// begun takes in that an answer of this pass began an operation, if it did. Its result is not asked for at once.
func (p *caller) begun(after time.Duration) bool {
	if !p.track.given.begins() {
		return false
	}
	p.facts.Op.Polled, p.pollAfter = true, after
	return true
}

// poll asks about the operation that goes on.
func (p *caller) poll(ctx context.Context) {
	p.facts.Op.Polled = true
	op := p.running()
	if err := p.readPasswords(ctx); err != nil { // they must not be shown
		p.take(decide.ActionPoll, answer{failure: &classification{class: decide.ClassTransient, text: plain.Error(err)}})
		return
	}
	var got Polled
	var state returnedState
	compare := p.comparerAfter(p.track.followed.applied)
	driver, r := &p.e.driver, p.request()
	r.Key = op.ID
	p.ask(ctx, decide.ActionPoll, func(ctx context.Context, obj Object) (string, error) {
		r.Object = obj
		polled, err := driver.Poll(ctx, r)
		if err != nil {
			return "", err
		}
		if got = polled; polled.Done && polled.Err == nil && op.Call != record.CallDelete {
			state = returned(compare, obj, polled.Observed)
		}
		return polled.word(), nil
	})
	switch {
	case p.facts.Last.Failed: // an abandoned call may still write to got
	case p.last.absent:
		p.lostSight(ctx, op)
	case got.Err != nil:
		p.takeID(got.ID)
		p.failed(ctx, op, got.Err)
	case got.Done:
		p.takeID(got.ID)
		p.done(ctx, op, got.Details, state)
	default:
		p.pollAfter = got.After
	}
}

// word says how the operation is, for traces.
func (g Polled) word() string {
	switch {
	case g.Err != nil:
		return "failed"
	case g.Done:
		return "done"
	}
	return "running"
}

// takeID takes in the identity of the resource in the answer to a poll.
func (p *caller) takeID(id string) {
	if p.track.given == nil || p.track.given.incarnation != p.record.Incarnation {
		p.expect("")
	}
	p.track.given.take(p.id, id)
}

// ended notes that an operation has ended. What it did is not done again in this pass: a read may lag behind.
func (p *caller) ended(op record.Operation, why *classification) {
	p.facts.Seen = decide.Seen{}
	p.track.followed.ended, p.track.followed.failure = op, why
	switch op.Call {
	case record.CallCreate:
		p.facts.Did.Create, p.track.occurred.Creating = true, true
	case record.CallUpdate:
		p.facts.Did.Update, p.track.occurred.Updating = true, true
	case record.CallDelete:
		p.facts.Did.Delete = true
	}
}

// lostSight is about an operation that the API does not know any more: only an observation shows what it did.
func (p *caller) lostSight(ctx context.Context, op record.Operation) {
	if op.Call == record.CallUpdate && !p.takeBackPasswords(ctx) {
		return // it is asked about again
	}
	p.ended(op, nil)
	if op.Call == record.CallCreate {
		p.track.createHangs(time.Now())
		p.track.doubt = time.Time{} // an API forgets what has ended
	}
}

// done is about an operation that succeeded.
func (p *caller) done(ctx context.Context, op record.Operation, details map[string][]byte, now returnedState) {
	if !p.keepDetails(ctx, details) {
		return // it is asked about again
	}
	p.ended(op, nil)
	p.wasGiven(p.track.followed.applied)
	switch op.Call {
	case record.CallCreate:
		p.track.createDone(time.Now())
		if err := p.e.fitAssigned(p.track.given.of()); err != nil && p.id == "" {
			p.run.Log().Error(err, "the operation is done, but its resource is not known")
		}
	case record.CallUpdate:
		if hash := p.track.followed.hash; hash != "" && op.Generation == p.obj.GetGeneration() {
			p.track.updateAnswered(op.Generation, hash)
		}
	case record.CallDelete:
		p.track.deleteAnswered(false)
	}
	p.answered(ctx, now)
}

// keepDetails makes durable what only the answer to a poll has, and reports whether it is.
func (p *caller) keepDetails(ctx context.Context, details map[string][]byte) bool {
	if len(details) == 0 || p.e.driver.Connection == nil || p.facts.Deleting { // nobody needs them any more
		return true
	}
	p.track.outputs.handed = &handed{}
	p.track.outputs.handed.take(details)
	if to, err := p.destination(); err != nil {
		p.failedToPublish(err)
	} else if to != nil {
		p.handOver(ctx, false)
	}
	return !p.facts.Publish.Failed
}

// failed is about an operation that failed: its call counts as failed, and the resource may be in any state.
func (p *caller) failed(ctx context.Context, op record.Operation, cause error) {
	c := classify(cause, p.e.driver.Errors, false)
	c.text = hide(c.text, p.secrets())
	for _, crash := range c.broken {
		p.logPanic(crash)
	}
	if c.class == decide.ClassAmbiguous || c.class == decide.ClassThrottled { // an operation that has ended is not
		c.class = decide.ClassTransient
	}
	if op.Call == record.CallUpdate && !p.takeBackPasswords(ctx) {
		return // it is asked about again
	}
	p.ended(op, &c)
	of := callOf(op.Call)
	if c.class == decide.ClassInvalid || c.class == decide.ClassTerminal {
		b := p.basis()
		b.generation = op.Generation
		p.track.refuse(of, b, c.class, errors.New(c.text))
	}
	answer, present := decide.Answer{Of: of, Failed: true, Class: c.class, Late: true}, op.Generation == p.obj.GetGeneration()
	switch op.Call {
	case record.CallCreate:
		p.createFailed(c.class)
		if present { // what is left of it is observed first
			p.facts.Create, p.refused = answer, c.text
		}
		return
	case record.CallDelete:
		p.track.deleteAccepted, present = false, true
	case record.CallUpdate:
	}
	if present { // otherwise the user has changed the spec since
		p.facts.Last, p.last.failure = answer, &c
	} else {
		p.facts.Did.Update = false
	}
}

// createFailed notes that the operation failed that was to create the resource. Something may be left of it.
func (p *caller) createFailed(c decide.Class) {
	assigned := p.e.options.AssignedIDs
	unknown := assigned && p.id == "" && p.track.given.of() == "" && p.e.identity() != decide.IdentityMark
	// Nothing could find what has no id, or show later whose it is.
	p.track.createFailed(time.Now(), unknown || p.e.observesFirst())
	p.track.doubtful = p.track.doubtful || p.e.observesFirst() && c != decide.ClassConflict
	p.track.followed.spent = assigned
}

// cancel asks the API to end the operation that goes on.
func (p *caller) cancel(ctx context.Context) {
	p.facts.Did.Cancel = true
	op := p.running()
	driver, r := &p.e.driver, p.request()
	r.Key = op.ID
	p.ask(ctx, decide.ActionCancel, func(ctx context.Context, obj Object) (string, error) {
		r.Object = obj
		return "ok", driver.Cancel(ctx, r)
	})
	if c := p.facts.Last.Class; !p.facts.Last.Failed || c == decide.ClassInvalid || c == decide.ClassTerminal {
		p.track.followed.canceled = op // it is not asked again what it refuses
	}
}

// operationTexts are the texts about the operation that goes on.
func (p *caller) operationTexts(t *decide.Texts) {
	if op := p.running(); op.ID != "" {
		t.Operation = fmt.Sprintf("operation %q", plain.Clip(plain.Text(op.ID), longestShownOperation))
		t.Limit = shortDuration(p.e.operationLimit())
	}
	if p.track.followed.failure != nil && t.External == "" {
		t.External = p.track.followed.failure.text
	}
}

// longestShownOperation bounds, in bytes, the id of an operation in messages: some APIs call them by URLs.
const longestShownOperation = 60

// shortDuration is d without what is zero at its end.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

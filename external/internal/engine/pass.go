package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// mostSteps bounds how often a pass decides and acts. The longest path through the table, a
// recreation that starts with a confirmation, takes ten steps.
const mostSteps = 16

// pass is the state of one pass.
type pass struct {
	e        *Engine
	obj      Object
	run      Run
	trace    *trace.Pass
	track    *track
	settings settings
	// here is the place of the operator and the object. Its endpoint is empty until there is a
	// client.
	here   record.Place
	client *connected
	// shared is what the object shares with others of the same client. It is nil if the client is
	// not known; connect or hangs then says why.
	shared *shared
	// copy is what the driver gets to see of obj. lent reports whether it still equals obj.
	copy Object
	// hangs is why nothing may be called for the object. out is the object's own abandoned call,
	// if that is why.
	hangs error
	out   *abroad
	// turned is why the object may not call the external API; shut is the text for users.
	shut   string
	turned decide.Scope
	lent   bool
	// shown reports whether the status of obj describes what this pass observed.
	shown bool
	// startsOver reports whether the record describes a resource at another endpoint that a user said to
	// leave there.
	startsOver bool
	did        done
	// unreflected is why status does not show what was observed.
	unreflected error

	// rememberedAt is the endpoint of what is known from memory.
	rememberedAt string
	// record is the durable record; inherited is that of another object, copied or restored.
	record    record.Record
	inherited *record.Record // nil if there is none
	trouble   error          // why the record or the name cannot be used
	id        string
	named     string // the name that the spec yields now

	facts   decide.Facts
	looked  time.Time
	seen    Observation
	changes change.List
	waiting []loop.Dep

	last    answer // to the last call
	refused string // why the create was refused in this pass
	connect error
	// holder names, for users, the object that has the better claim.
	holder string
	told   told
	wanted wish // when the resource was observed
}

// done is what a pass did, for reports.
type done struct {
	created bool
}

// told is what a pass reported.
type told struct{ reason, message string }

func (e *Engine) open(r Run) *pass {
	p := &pass{
		e: e, obj: r.Object(), run: r, track: e.tracks.of(r.Object().GetUID()),
		settings: readSettings(r.Object().GetAnnotations(), time.Now(), e.limits(r.Terms(), r.Object().GetNamespace())),
	}
	if left, still := e.left.of(p.uid()); still {
		p.out, p.hangs = left, left.err()
	} else if left != nil {
		p.track.takeBack(left.action, left.answer)
	}
	return p
}

// close releases what the pass used.
func (p *pass) close() { p.client.release() }

func (p *pass) uid() types.UID { return p.obj.GetUID() }

// converge decides and acts until nothing is left to do in this pass.
func (p *pass) converge(ctx context.Context) (decide.Decision, error) {
	p.trace = trace.From(ctx)
	defer func() { p.track.keep(p.record) }()
	if err := p.load(ctx); err != nil {
		return decide.Decision{}, err
	}
	if p.obj.TrimtabStatus().State == "" && p.obj.GetDeletionTimestamp().IsZero() {
		p.run.SetState(string(decide.StatePending), "", "")
	}
	for range mostSteps {
		d := decide.Next(p.gather())
		p.trace.Emit(trace.Decision{Rule: d.Row.String(), Action: d.Action.String(), Because: string(d.Reason)})
		if err := p.announce(ctx, d); err != nil {
			return d, err
		}
		if d.Action.Final() {
			return d, nil
		}
		if err := p.act(ctx, d); err != nil {
			return d, err
		}
		if errors.Is(ctx.Err(), context.Canceled) { // the process stops, and the outcome is unknown
			return decide.Decision{Reason: decide.ReasonObserving}, nil
		}
	}
	return decide.Decision{}, errors.New("the pass does not come to an end; this is a bug in trimtab")
}

// load reads what does not change within a pass.
func (p *pass) load(ctx context.Context) error {
	var err error
	if p.here, err = p.e.here(ctx, p.run); err != nil {
		return err
	}
	if err := p.readRecord(); err != nil {
		return err
	}
	p.findScope()
	if err := p.putBack(ctx); err != nil {
		return err
	}
	if !p.track.read(p.record, time.Now(), p.e.settled()) {
		// If the object is a stale copy, this ends the pass; otherwise others changed the record.
		if err := p.confirm(ctx); err != nil {
			return err
		}
		p.track.meet(p.record, time.Now(), p.e.settled())
	}
	if err := p.keepGiven(ctx); err != nil {
		return err
	}
	if p.obj.GetDeletionTimestamp().IsZero() && p.hangs == nil {
		if err := p.withdraw(ctx); err != nil { // the attempt after the create failed
			return err
		}
		if p.waiting, err = p.e.unready(ctx, p.run, p.lend()); err != nil {
			return err
		}
		p.track.waits(p.waiting, time.Now())
	}
	p.recall(ctx)
	return nil
}

// readRecord reads the annotation and determines the resource's identity: the recorded one, or
// else the name that the spec yields. If the driver panics when asked for the name, the pass fails
// and is retried; only a deletion can do without the name.
func (p *pass) readRecord() error {
	r, err := p.track.parse(p.obj.GetAnnotations()[api.AnnotationExternal])
	if err != nil {
		p.facts.Record.Trouble, p.trouble = decide.TroubleCorrupt, err
		return nil //nolint:nilerr // it is a fact for the decision
	}
	if r.Exists() && r.UID != string(p.obj.GetUID()) {
		if r.Stays("", p.here) { // otherwise it is a copy
			p.inherited = new(r)
		}
		r = record.Record{}
	}
	p.record = r
	if p.hangs != nil { // the driver cannot even be asked for the name
		p.named = r.ID
	} else if p.named, err = p.e.name(subjectOf(p.obj), p.lend); isUnreturned(err) {
		p.named, p.hangs = r.ID, err
	} else if err != nil {
		crash, _ := errors.AsType[*guard.PanicError](err)
		p.logPanic(crash)
		if unasked(err) && p.obj.GetDeletionTimestamp().IsZero() {
			return err
		}
		p.facts.Record.Trouble, p.trouble = decide.TroubleName, err
	}
	p.identify()
	return nil
}

// identify determines the identity by which to observe.
func (p *pass) identify() {
	switch {
	case p.record.Given != "":
		p.id = p.record.Given
	case p.record.ID != "":
		p.id = p.record.ID
	case p.inherited != nil && p.inherited.Given != "":
		p.id = p.inherited.Given
	case p.inherited != nil && p.inherited.ID != "":
		p.id = p.inherited.ID
	default:
		p.id = p.named
	}
}

// outdated ends a pass over a stale copy; the loop repeats it with a newer one.
func (p *pass) outdated(why error) error {
	return loop.Outdated(fmt.Errorf("%s %s: %w", p.e.kind, p.obj.GetName(), why))
}

// gather brings the facts up to date.
func (p *pass) gather() decide.Facts {
	p.gatherTold()
	f := &p.facts
	f.Paused, f.Policy = p.settings.pause, p.settings.policy
	f.Dependencies = decide.DependenciesReady
	if len(p.waiting) > 0 {
		f.Dependencies = decide.DependenciesUnready
	}
	f.Depends, f.LastTry = p.e.driver.DependsOn != nil, p.run.Retry().Last
	f.Grace, f.UniqueNames = p.e.grace(), p.e.options.UniqueNames
	f.MarkLater = p.e.options.MarkLater
	f.CanMark, f.CanUnmark = p.e.driver.Mark != nil && !p.e.options.Unmarked, p.e.driver.Unmark != nil
	p.gatherScope()
	now := time.Now()
	if f.Seen.Looked {
		now = p.looked
	}
	p.track.facts(f, now)
	p.gatherRecord()
	f.Refused, f.RefusedAs = p.track.refused(p.basis()), p.track.refusal.class
	f.Unconfirmed = p.track.unconfirmed(p.obj.GetGeneration())
	f.SameUpdates = p.track.sameUpdates(p.obj.GetGeneration(), p.changes.ToRemove().Hash())
	return *f
}

// gatherRecord gathers the facts about the record and the name.
func (p *pass) gatherRecord() {
	f := &p.facts
	f.Record.Incarnation, f.Record.Marker = p.record.Incarnation, p.record.Progress()
	f.Record.KnownID = p.id != ""
	f.Record.Expired, f.Record.Doubtful = p.record.Create.Expired(time.Now(), record.MarkerLife), p.e.looksFirst() && (p.record.Doubt || p.track.doubtful)
	if p.e.options.Unmarked && f.Deleting && !p.record.Exists() {
		f.Record.KnownID = false // without a record no create was called
	}
	if p.record.Given != "" || p.inherited != nil && p.inherited.Given != "" {
		f.Record.Trouble = decide.TroubleGiven
		return
	}
	if f.Record.Trouble == decide.TroubleCorrupt || f.Record.Trouble == decide.TroubleName {
		return
	}
	f.Record.Trouble = decide.TroubleNone
	if p.gatherEndpoint() && p.record.Exists() && p.record.ID != p.named {
		p.rename()
	}
}

// gatherEndpoint reports whether the recorded resource is at the endpoint that the client talks
// to. One that was created elsewhere stays there until a user says to start over here. An endpoint
// that was not known when the record was written is pinned before the first create.
func (p *pass) gatherEndpoint() bool {
	f := &p.facts
	pinned, here := p.record.Endpoint, p.here.Endpoint
	p.startsOver = here != "" && pinned != "" && pinned != here && p.obj.GetAnnotations()[api.AnnotationEndpoint] == here
	missing := f.Seen.Looked && f.Seen.Phase == decide.PhaseMissing && f.Creation <= decide.CreationPossible && p.record.ID == p.named
	unpinned := here != "" && pinned == "" && p.record.Exists() && (f.Creation == decide.CreationNone || missing)
	switch {
	case p.startsOver:
		f.Creation, f.DeleteAccepted, f.Record.KnownID = decide.CreationNone, false, !f.Deleting
	case unpinned:
		f.Record.Incarnation--
	case here != "" && pinned != "" && pinned != here:
		f.Record.Trouble = decide.TroubleEndpoint
		return false
	default:
		return true
	}
	f.Record.Marker = record.MarkerNone
	if p.id != p.named {
		p.id, f.Seen = p.named, decide.Seen{}
	}
	return false
}

// rename determines what a new name in the spec means. A resource keeps the name it was created
// with; if certainly nothing was created yet, the new name is used.
func (p *pass) rename() {
	f := &p.facts
	switch f.Creation {
	case decide.CreationUntold: // observed by the old name first
	case decide.CreationRefused:
		if p.id == p.named || f.Seen.Looked && !f.Seen.Ours() {
			p.takeName()
		}
	case decide.CreationNone:
		p.takeName()
	case decide.CreationPossible, decide.CreationSettled, decide.CreationCalled, decide.CreationSeen:
		f.Record.Trouble = decide.TroubleRenamed
	}
}

// takeName goes on with the name that the spec yields now.
func (p *pass) takeName() {
	f := &p.facts
	f.Record.Marker = record.MarkerNone
	f.Record.Incarnation--
	if p.id != p.named {
		p.id, f.Seen = p.named, decide.Seen{}
	}
}

// basis returns what the API's refusal of a call depends on.
func (p *pass) basis() basis {
	return basis{
		generation: p.obj.GetGeneration(), policy: p.settings.policy,
		asked: p.obj.GetAnnotations()[api.AnnotationReconcile],
	}
}

// act does what was decided. An error ends the pass; the outcome of an external API call is a fact
// for the next decision instead.
func (p *pass) act(ctx context.Context, d decide.Decision) error {
	switch d.Action {
	case decide.ActionConfirm:
		return p.confirm(ctx)
	case decide.ActionWriteMarker:
		return p.writeMarker(ctx, d.Incarnation)
	case decide.ActionAdopt:
		return p.adopt(ctx)
	case decide.ActionObserve, decide.ActionCreate, decide.ActionUpdate, decide.ActionDelete, decide.ActionMark, decide.ActionUnmark:
		if !p.admitted() || !p.connected(ctx) {
			return nil
		}
		p.call(ctx, d)
		return p.note(ctx, d.Action)
	case decide.ActionPoll, decide.ActionCancel, decide.ActionFindOwned, decide.ActionPublish, decide.ActionPrepareDelete,
		decide.ActionNone, decide.ActionRemoveFinalizer, decide.ActionStop:
	}
	return fmt.Errorf("%s decided %q, for which no fact was given; this is a bug in trimtab", d.Row, d.Action)
}

// connected obtains the client of the external API and reports whether the pass can use it.
func (p *pass) connected(ctx context.Context) bool {
	began := time.Now()
	if p.client == nil {
		p.client, p.connect = p.e.clientOf(ctx, p.shared, p.lend)
	}
	if p.connect != nil {
		p.shared.scope.answered(subjectOf(p.obj).key, answerAway, began, time.Now(), 0, decide.Unconnected+p.connect.Error())
		p.facts.Scope = decide.ScopeUnconnectable
		p.trace.Emit(trace.Call{Op: "connect", Err: plain.Error(p.connect)})
		return false
	}
	return p.located(p.client.endpoint)
}

// located records the endpoint that the client talks to and reports whether the resource is there.
func (p *pass) located(endpoint string) bool {
	if p.here.Endpoint == endpoint {
		return p.facts.Record.Trouble != decide.TroubleEndpoint
	}
	p.here.Endpoint = endpoint
	before := p.id
	if p.inherited != nil && !p.inherited.Vouches(p.here) {
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

// writeMarker makes durable that a create may be called.
func (p *pass) writeMarker(ctx context.Context, incarnation int64) error {
	r, _, err := p.e.newRecord(p.obj, p.here, p.named, incarnation)
	if err != nil {
		return err
	}
	r, value, err := record.Settle(r.Follows(p.record))
	if err != nil {
		return err
	}
	if err := p.persist(ctx, value); err != nil {
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
func (p *pass) withdraw(ctx context.Context) error {
	if !p.e.looksFirst() || !p.track.withdraws(p.record) {
		return nil
	}
	r := p.record
	r.Refused, r.Doubt = true, p.track.doubtful
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record that the create was refused: %w", err)
	}
	return nil
}

// adopt makes durable that the observed resource is ours.
func (p *pass) adopt(ctx context.Context) error {
	if p.record.Given != "" {
		return p.sawGiven(ctx)
	}
	made := p.e.options.MarkLater && p.record.Exists() && p.facts.Seen.Owner == decide.OwnerUs
	r, _, err := p.e.newRecord(p.obj, p.here, p.id, max(1, p.record.Incarnation))
	if err != nil {
		return err
	}
	r = r.Follows(p.record)
	r.Done = time.Now()
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
	p.track.adopted(r.Create, r.Incarnation, time.Now())
	p.facts.Seen = decide.Seen{}
	if !made {
		p.event("Normal", "Adopted", "adopted "+p.what())
	}
	return nil
}

// persist writes the record now; the write fails unless the object is still at the version that
// was read.
func (p *pass) persist(ctx context.Context, value string) error {
	before := p.obj.GetAnnotations()[api.AnnotationExternal]
	p.lent = false
	annotate(p.obj, value)
	if err := p.run.Persist(ctx); err != nil {
		annotate(p.obj, before)
		return err
	}
	return nil
}

// incarnation returns the number of creations for the object, from 1, including one that is about
// to happen.
func (p *pass) incarnation() int64 { return max(1, p.record.Incarnation) }

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// mostSteps bounds how often a pass decides and acts. The longest way through the table,
// a re-creation that starts with a confirmation, takes ten.
const mostSteps = 16

// pass is one visit of one object.
type pass struct {
	e        *Engine
	obj      Object
	loop     *Run
	trace    *trace.Pass
	track    *track
	settings settings
	// here is where the operator and the object are. Its endpoint is empty until there is a
	// client.
	here   record.Place
	client *connected
	// shared is what the object shares with those that use the same client; nil if it is not
	// known which one, and connect or hangs says why.
	shared *shared
	// copy is what the author's code gets to see of obj; lent, if it is as obj is now.
	copy Object
	lent bool
	// hangs is why nothing may be called for the object; out is the call of its own that was
	// left behind, if that is why.
	hangs error
	out   *abroad
	// turned is why the object was not let through to the external API, shut how people are
	// told.
	turned decide.Scope
	shut   string
	// shown: the status of obj is about what this pass observed.
	shown bool
	// unreflected is why status does not show what was observed.
	unreflected error

	// anew: the record is of a thing at another endpoint, which a person said to leave.
	anew bool
	// record is what is durable; inherited is that of another object, copied or restored.
	record    record.Record
	inherited record.Record
	trouble   error // why the record or the name cannot be used
	id        string
	named     string // what the spec calls the thing now

	facts   decide.Facts
	looked  time.Time
	seen    Observation
	changes change.List
	waiting []loop.Dep

	last    classification // of the last failed call
	refused classification // of the create that was refused in this pass
	connect error
	did     done
	// holder names the object that stands in the way, for people.
	holder string
	told   conditions.Report
	wanted wish // when the thing was looked at
}

// done is what a pass did, for people to be told.
type done struct {
	created bool
}

func (e *Engine) open(r *Run) *pass {
	p := &pass{
		e: e, obj: r.Object, loop: r, track: e.tracks.of(r.Object.GetUID()),
		settings: readSettings(r.Object.GetAnnotations(), time.Now(), e.limits(r.Terms, r.Object.GetNamespace())),
	}
	if left, still := e.left.of(p.uid()); still {
		p.out, p.hangs = left, left.err()
	} else if left != nil {
		p.track.takeBack(left.action, left.answer)
	}
	return p
}

// close gives back what the pass used.
func (p *pass) close() { p.client.release() }

func (p *pass) uid() types.UID { return p.obj.GetUID() }

// run decides and acts until nothing is left to do in this pass.
func (p *pass) run(ctx context.Context) (decide.Decision, error) {
	p.trace = trace.From(ctx)
	defer func() { p.track.keep(p.record) }()
	if err := p.load(ctx); err != nil {
		return decide.Decision{}, err
	}
	if p.obj.TrimtabStatus().State == "" && p.obj.GetDeletionTimestamp().IsZero() {
		p.loop.SetState(string(decide.StatePending), "", "")
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
		if errors.Is(ctx.Err(), context.Canceled) { // the process stops; nothing is known but that
			return decide.Decision{Reason: decide.ReasonObserving}, nil
		}
	}
	return decide.Decision{}, errors.New("the pass does not come to an end; this is a bug in trimtab")
}

// load reads what does not change within a pass.
func (p *pass) load(ctx context.Context) error {
	var err error
	if p.here, err = p.e.here(ctx, p.loop); err != nil {
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
		// An old copy ends the pass; otherwise the record was changed by others.
		if err := p.confirm(ctx); err != nil {
			return err
		}
		p.track.meet(p.record, time.Now(), p.e.settled())
	}
	if err := p.keepGiven(ctx); err != nil {
		return err
	}
	if p.obj.GetDeletionTimestamp().IsZero() && p.hangs == nil {
		if err := p.withdraw(ctx); err != nil { // it did not succeed after the create
			return err
		}
		if p.waiting, err = p.e.unready(ctx, p.loop, p.lend()); err != nil {
			return err
		}
		p.track.waits(p.waiting, time.Now())
	}
	p.recall(ctx)
	return nil
}

// readRecord reads the annotation and settles under which identity the thing is known: the
// recorded one, or else the name that the spec gives it. A driver that breaks when it is asked for
// that name is asked again; only what is to be deleted can do without.
func (p *pass) readRecord() error {
	r, err := p.track.parse(p.obj.GetAnnotations()[api.AnnotationExternal])
	if err != nil {
		p.facts.Record.Trouble, p.trouble = decide.TroubleCorrupt, err
		return nil //nolint:nilerr // it is a fact, and what comes of it is decided
	}
	if r.Exists() && r.UID != string(p.obj.GetUID()) {
		if p.inherited = r; !r.Stays("", p.here) { // a copy
			p.inherited = record.Record{}
		}
		r = record.Record{}
	}
	p.record = r
	if p.hangs != nil { // not even the name can be asked for
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

// identify settles the identity under which to look.
func (p *pass) identify() {
	switch {
	case p.record.Given != "":
		p.id = p.record.Given
	case p.record.ID != "":
		p.id = p.record.ID
	case p.inherited.Given != "":
		p.id = p.inherited.Given
	case p.inherited.ID != "":
		p.id = p.inherited.ID
	default:
		p.id = p.named
	}
}

// outdated ends a pass that works on an old copy; the loop repeats it with a newer one.
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
	f.Depends, f.LastTry = p.e.driver.DependsOn != nil, p.loop.Retry.Last
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
		f.Record.KnownID = false // a create needs a record, and there is none
	}
	if p.record.Given != "" || p.inherited.Given != "" {
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

// gatherEndpoint settles whether the record is of a thing where the client looks. One that was
// made elsewhere stays there until a person says to begin anew here. An endpoint that was not
// known when the record was written is pinned before the first create.
func (p *pass) gatherEndpoint() bool {
	f := &p.facts
	pinned, here := p.record.Endpoint, p.here.Endpoint
	p.anew = here != "" && pinned != "" && pinned != here && p.obj.GetAnnotations()[api.AnnotationEndpoint] == here
	missing := f.Seen.Looked && f.Seen.Phase == decide.PhaseMissing && f.Creation <= decide.CreationPossible && p.record.ID == p.named
	unpinned := here != "" && pinned == "" && p.record.Exists() && (f.Creation == decide.CreationNone || missing)
	switch {
	case p.anew:
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

// rename settles what a new name in the spec comes to. A thing keeps the name it was made by;
// where nothing was made yet, the new one may do, once it is certain.
func (p *pass) rename() {
	f := &p.facts
	switch f.Creation {
	case decide.CreationUntold: // looked for by the old name first
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

// takeName goes on under the name that the spec gives now.
func (p *pass) takeName() {
	f := &p.facts
	f.Record.Marker = record.MarkerNone
	f.Record.Incarnation--
	if p.id != p.named {
		p.id, f.Seen = p.named, decide.Seen{}
	}
}

// basis is what the API's refusal of a call rests on.
func (p *pass) basis() basis {
	return basis{
		generation: p.obj.GetGeneration(), policy: p.settings.policy,
		asked: p.obj.GetAnnotations()[api.AnnotationReconcile],
	}
}

// act does what was decided. An error ends the pass; what a call of the external API came
// to is a fact for the next decision instead.
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

// connected sees to the client of the external API.
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

// located takes in what the client talks to, and tells whether that is where the thing is.
func (p *pass) located(endpoint string) bool {
	if p.here.Endpoint == endpoint {
		return p.facts.Record.Trouble != decide.TroubleEndpoint
	}
	p.here.Endpoint = endpoint
	before := p.id
	if p.inherited.Exists() && !p.inherited.Vouches(p.here) {
		p.inherited = record.Record{}
		p.identify()
	}
	p.gather()
	return p.facts.Record.Trouble != decide.TroubleEndpoint && p.id == before
}

// confirm reads the object from the API server and wants the copy at hand to say the same
// about what may be done to which thing. Who writes labels or status meanwhile is no reason
// to begin anew.
func (p *pass) confirm(ctx context.Context) error {
	if p.loop.Vanished { // the loop asked before this pass
		p.track.fresh = true
		return nil
	}
	now, _ := p.obj.DeepCopyObject().(Object)
	err := p.loop.Live.Get(ctx, client.ObjectKeyFromObject(p.obj), now)
	switch {
	case apierrors.IsNotFound(err):
		return p.outdated(errors.New("the object is gone"))
	case err != nil:
		return fmt.Errorf("confirm that the object is no old copy: %w", err)
	case !p.current(now):
		return p.outdated(errors.New("the copy at hand is older than the object"))
	}
	p.track.fresh = true
	return nil
}

// current tells whether the copy at hand asks for the same as the object does now.
func (p *pass) current(now Object) bool {
	annotations, recorded := now.GetAnnotations(), p.obj.GetAnnotations()[api.AnnotationExternal]
	settings := readSettings(annotations, time.Now(), p.settings.limits)
	deleting := !now.GetDeletionTimestamp().IsZero()
	return now.GetUID() == p.obj.GetUID() && annotations[api.AnnotationExternal] == recorded &&
		deleting != p.obj.GetDeletionTimestamp().IsZero() && (deleting || now.GetGeneration() == p.obj.GetGeneration()) &&
		settings.pause == p.settings.pause && settings.policy == p.settings.policy && settings.from == p.settings.from &&
		annotations[api.AnnotationEndpoint] == p.obj.GetAnnotations()[api.AnnotationEndpoint]
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
	p.record, p.inherited = r, record.Record{}
	p.identify()
	p.track.wroteMarker(r.Create, r.Incarnation)
	return nil
}

// withdraw makes durable that a create was certainly refused, where no mark could tell later
// that the thing which bears the name is not ours.
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

// adopt makes durable that the thing seen is ours.
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
	p.record, p.inherited = r, record.Record{}
	p.track.adopted(r.Create, r.Incarnation, time.Now())
	p.facts.Seen = decide.Seen{}
	if !made {
		p.event("Normal", "Adopted", "adopted "+p.what())
	}
	return nil
}

// persist writes the record now, on top of the version that was read.
func (p *pass) persist(ctx context.Context, value string) error {
	before := p.obj.GetAnnotations()[api.AnnotationExternal]
	p.lent = false
	annotate(p.obj, value)
	if err := p.loop.Persist(ctx); err != nil {
		annotate(p.obj, before)
		return err
	}
	return nil
}

// incarnation counts the creations for the object, from 1, and counts the one to come.
func (p *pass) incarnation() int64 { return max(1, p.record.Incarnation) }

func (p *pass) event(kind, reason, note string) { p.loop.Event(kind, reason, note) }

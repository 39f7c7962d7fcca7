package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// mostSteps bounds how often a pass decides and acts. The longest path through the table, a
// recreation that starts with a confirmation, takes ten steps.
const mostSteps = 16

// pass is one pass over one object. Each of the layers that it is made of embeds the one below: reporter,
// caller, resource, recording, identity, access, managed. So a layer can call only what is below it.
type pass struct{ reporter }

func (e *Engine) open(r Run) *pass {
	p := &pass{}
	p.managed = managed{
		e: e, obj: r.Object(), run: r, track: e.tracks.of(r.Object().GetUID()),
		settings: readSettings(r.Object().GetAnnotations(), time.Now(), e.limits(r.Terms(), r.Object().GetNamespace())),
	}
	if left, still := e.abandoned.of(p.uid()); still {
		p.abandoned, p.hangs = left, left.err()
	} else if left != nil {
		p.track.takeBack(left.action, left.answer)
	}
	return p
}

// close releases what the pass used.
func (p *pass) close() { p.client.release() }

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
	if p.place, err = p.e.place(ctx, p.run); err != nil {
		return err
	}
	if err := p.readRecord(); err != nil {
		return err
	}
	p.readApplied()
	p.findScope(ctx)
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
	p.handOverLate(ctx)
	if err := p.keepAssigned(ctx); err != nil {
		return err
	}
	if p.hangs == nil {
		if err := p.lookAround(ctx); err != nil {
			return err
		}
	}
	p.recall(ctx)
	return nil
}

// lookAround looks for the objects that this one needs. What is missing does not hold back a deletion.
func (p *pass) lookAround(ctx context.Context) error {
	if !p.obj.GetDeletionTimestamp().IsZero() {
		found, err := p.e.needsOf(ctx, p.run, p.lend())
		if p.needs = found.found; err != nil {
			p.run.Log().Error(err, "the driver gets only some of the dependencies of an object that is being deleted")
		}
		return nil
	}
	if err := p.withdraw(ctx); err != nil { // the attempt after the create failed
		return err
	}
	found, err := p.e.needsOf(ctx, p.run, p.lend())
	if err != nil {
		return err
	}
	if p.settings.pause == decide.PauseNone {
		if err := p.e.own(p.run.Client(), p.obj, found.owner); err != nil {
			return err
		}
	}
	p.needs, p.waiting = found.found, found.waiting
	if p.login != nil && p.login.unkept != nil {
		p.waiting = append(p.waiting, *p.login.unkept)
	}
	p.track.waits(p.waiting, time.Now())
	return nil
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
	case decide.ActionObserve, decide.ActionCreate, decide.ActionUpdate, decide.ActionDelete, decide.ActionMark, decide.ActionUnmark,
		decide.ActionFindOwned, decide.ActionPoll, decide.ActionCancel, decide.ActionFinish:
		if !p.admitted() || !p.connected(ctx) {
			return nil
		}
		if !p.prepared(ctx, d.Action) {
			return nil
		}
		if err := p.doubtApplied(ctx, d.Action); err != nil {
			return err
		}
		if loop.IsDryRun(ctx) && (d.Action.Mutates() || d.Action == decide.ActionFinish) {
			return p.hold(d.Action)
		}
		p.call(ctx, d)
		return p.note(ctx, d.Action)
	case decide.ActionComplete:
		return p.complete(ctx)
	case decide.ActionPublish:
		if due := p.publish(ctx); len(due) > 0 {
			p.changes = append(p.changes, due...)
			p.traceDrift(due)
			p.classify()
		}
		return nil
	case decide.ActionPrepareDelete, decide.ActionNone, decide.ActionRemoveFinalizer, decide.ActionStop:
	}
	return fmt.Errorf("%s decided %q, for which no fact was given; this is a bug in trimtab", d.Row, d.Action)
}

// errHeld is the error of a pass of a dry run that ends before a call which would change something.
var errHeld = errors.New("a dry run does not make the call")

// hold notes a call that a dry run does not make.
func (p *pass) hold(a decide.Action) error {
	p.trace.Emit(trace.Call{Op: a.String(), Target: cmp.Or(p.id, p.named), Mutating: true, Result: "held back"})
	return errHeld
}

// prepared makes durable, before a create or update, what must not be lost with its answer. It reports whether the call
// can be made.
func (p *pass) prepared(ctx context.Context, a decide.Action) bool {
	if p.facts.Deleting { // a create that is repeated to learn the id
		return true
	}
	switch a {
	case decide.ActionCreate:
		return p.reserve(ctx, true)
	case decide.ActionUpdate:
		if p.facts.Publish.Failed || !p.hasPasswords() {
			return true
		}
		written := p.reserve(ctx, false)
		p.changes = withoutPasswords(p.changes) // the other changes need no Secret
		if written {
			p.changes = append(p.changes, p.knownOutputs()...)
		}
		p.classify()
		return written && p.facts.Differs.InPlace
	default:
		return true
	}
}

// confirm reads the object from the API server and requires that it agrees with the copy at hand
// about what may be done to which resource. A change of labels or status is no reason to start
// over.
func (p *pass) confirm(ctx context.Context) error {
	if p.run.Vanished() { // the loop has read the object from the API server
		p.track.fresh = true
		return nil
	}
	now, _ := p.obj.DeepCopyObject().(Object)
	err := p.run.Live().Get(ctx, client.ObjectKeyFromObject(p.obj), now)
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

// current reports whether the copy at hand still asks for what the object asks for now.
func (p *pass) current(now Object) bool {
	annotations, recorded := now.GetAnnotations(), p.obj.GetAnnotations()[api.AnnotationExternal]
	settings := readSettings(annotations, time.Now(), p.settings.limits)
	deleting := !now.GetDeletionTimestamp().IsZero()
	return now.GetUID() == p.obj.GetUID() && annotations[api.AnnotationExternal] == recorded &&
		deleting != p.obj.GetDeletionTimestamp().IsZero() && (deleting || now.GetGeneration() == p.obj.GetGeneration()) &&
		settings.pause == p.settings.pause && settings.policy == p.settings.policy && settings.from == p.settings.from &&
		annotations[api.AnnotationEndpoint] == p.obj.GetAnnotations()[api.AnnotationEndpoint]
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/loop"
)

func observed(id, word string, incarnation int64) *api.ExternalObservation {
	return &api.ExternalObservation{ID: id, Status: word, Incarnation: max(1, incarnation)}
}

// announce lets a trace and people follow the states of a pass as they come. A look
// changes nothing yet, and what ends the pass is told by its report.
func (p *pass) announce(ctx context.Context, d decide.Decision) error {
	reported := d.Action == decide.ActionNone || d.Action == decide.ActionStop
	if d.State != "" && d.Action != decide.ActionObserve && d.Action != decide.ActionConfirm && !reported {
		t := p.texts()
		p.loop.SetState(string(d.State), t.Reason(d), t.Message(d, p.facts))
	}
	if d.Row != 14 || d.Action != decide.ActionWriteMarker {
		return nil
	}
	if d.Reason == decide.ReasonMissingAfterRestart { // or it never came to be: only what was Ready is known to be lost
		if err := p.recallReady(ctx); err != nil || p.facts.ReadyFor == 0 {
			return err
		}
	}
	p.event("Warning", string(d.Reason), p.texts().Loss(d))
	return nil
}

// repaired tells that somebody else had changed the thing: it differed although this process
// had seen it as this very spec asks, and what is wanted is what was wanted then.
func (p *pass) repaired(differed change.List) {
	if p.facts.Deleting || p.did.created || !p.track.wish.same(p.wanted) || !differed.Visible() {
		return
	}
	p.event("Normal", "DriftRepaired", fmt.Sprintf("%s was changed outside the operator; corrected: %s", p.what(), differed))
}

// report hands what people are told of d to the loop.
func (p *pass) report(ctx context.Context, d decide.Decision) error {
	if generation, known := p.facts.ReadyAfter(d); generation == 0 && !known || d.Show.Ready == decide.ShowTrue && p.facts.Differs.Any() {
		if err := p.recallReady(ctx); err != nil {
			return err
		}
	}
	p.told = decide.Report(d, p.facts, p.texts())
	p.track.tells(p.told, d, p.facts)
	p.loop.Report(p.told)
	return nil
}

// gatherTold brings up to date what every report needs, also that of a pass that decides nothing.
func (p *pass) gatherTold() {
	f := &p.facts
	f.Deleting, f.Generation = !p.obj.GetDeletionTimestamp().IsZero(), p.obj.GetGeneration()
	f.Told, f.ReadyFor = p.track.said.Told, p.track.said.ReadyFor
}

// broken reports on a pass that came to no decision.
func (p *pass) broken(ctx context.Context, cause error) error {
	p.gatherTold()
	d := decide.Decision{State: decide.StateFailed, Reason: decide.ReasonReconcileFailed, Wake: decide.WakeBackoff, Show: decide.Show{Failed: decide.ShowTrue}}
	if p.facts.Deleting {
		d = decide.Terminating(d)
	}
	p.facts.Last, p.last = decide.Answer{}, classification{text: plain.Error(cause)}
	return p.report(ctx, d)
}

// recallReady fills in, once in the life of a process, for which generation the thing was
// Ready when another process last told. What our own field manager did not write is not
// believed, and neither is what tells of a spec that this object has not had yet.
func (p *pass) recallReady(ctx context.Context) error {
	if p.track.said.Told.State != "" || p.track.recalled {
		return nil
	}
	ready := meta.FindStatusCondition(p.obj.TrimtabStatus().Conditions, api.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		p.track.recalled = true
		return nil
	}
	c, err := p.e.vouched(ctx, p.loop.Live, p.obj)
	if err != nil {
		return err
	}
	p.track.recalled = true
	if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration > 0 && c.ObservedGeneration <= p.obj.GetGeneration() {
		p.track.said.ReadyFor, p.facts.ReadyFor = c.ObservedGeneration, c.ObservedGeneration
	}
	return nil
}

// outcome tells the loop when the object comes again.
func (p *pass) outcome(d decide.Decision) loop.Outcome {
	if d.Wake != decide.WakePoll && d.Wake != decide.WakeSoon && d.Wake != decide.WakeDependency && p.unreflected == nil {
		p.track.rest()
	}
	if p.unreflected != nil && (d.Wake == decide.WakeEvent || d.Wake == decide.WakeDependency || d.Wake == decide.WakeDrift) {
		return loop.AgainAfter(p.track.poll(d.Row, cmp.Or(p.e.DriftInterval(), mostPoll)))
	}
	switch d.Wake {
	case decide.WakeEvent:
		return loop.Terminal(p.told.Reason, errors.New(p.told.Message))
	case decide.WakeBackoff:
		return loop.Fail(errors.New(p.told.Message)).Because(p.told.Reason)
	case decide.WakePoll:
		return loop.AgainAfter(p.pollDelay(d))
	case decide.WakeSoon, decide.WakeNow:
		return loop.AgainAfter(p.track.poll(d.Row, 10*time.Second))
	case decide.WakeScope:
		return loop.AgainAfter(p.scopeDelay())
	case decide.WakeDependency:
		if slices.ContainsFunc(p.waiting, func(d loop.Dep) bool { return d.Why == unvouched }) {
			return loop.AgainAfter(p.track.poll(d.Row, 30*time.Second))
		}
		return loop.WaitFor(string(d.Reason), p.waiting...)
	case decide.WakeGrace:
		return loop.AgainAfter(p.facts.Grace - p.facts.SinceUnready)
	case decide.WakeDrift:
	}
	return p.settled(d)
}

// settled is the outcome of a decision that stands until the drift interval.
func (p *pass) settled(d decide.Decision) loop.Outcome {
	switch {
	case d.Action == decide.ActionStop:
		return loop.Terminal(p.told.Reason, errors.New(p.told.Message))
	case d.Row == 1 && !p.settings.until.IsZero():
		return loop.AgainAfter(max(time.Second, min(time.Until(p.settings.until), 10*time.Minute)))
	case d.Row == 1:
		return loop.WaitFor(string(d.Reason))
	case p.e.DriftInterval() == 0:
		return loop.Done()
	}
	return loop.After(p.around(p.e.DriftInterval())).LowPriority()
}

// cleanupOutcome tells the loop when an object that is to go comes again.
func (p *pass) cleanupOutcome(d decide.Decision) loop.CleanupOutcome {
	if d.Wake != decide.WakePoll && d.Wake != decide.WakeSoon {
		p.track.rest()
	}
	switch d.Wake {
	case decide.WakeBackoff:
		return loop.CleanupFailed(errors.New(p.told.Message)).Because(p.told.Reason)
	case decide.WakePoll:
		return loop.Keep(p.pollDelay(d))
	case decide.WakeSoon, decide.WakeNow:
		return loop.Keep(p.track.poll(d.Row, 10*time.Second))
	case decide.WakeScope:
		return loop.Keep(p.scopeDelay())
	case decide.WakeEvent, decide.WakeDrift, decide.WakeDependency, decide.WakeGrace:
	}
	return loop.KeepUntilEvent().Because(string(d.Reason))
}

// pollDelay is what the API hinted at, within limits, or a delay that doubles from 1 s to 30 s.
func (p *pass) pollDelay(d decide.Decision) time.Duration {
	grown := p.track.poll(d.Row, 30*time.Second)
	most := cmp.Or(p.e.DriftInterval(), mostPoll)
	for _, hint := range []time.Duration{p.last.after, p.seen.PollAfter} {
		if hint > 0 {
			least := soonest(p.track.polls)
			return bounded(hint, least, max(most, least))
		}
	}
	return grown
}

// soonest is how soon a hint can bring an object back after so many looks in a row that found
// the same work under way: what is done in a moment is seen in a moment, what never ends is
// looked at ever more slowly.
func soonest(polls int) time.Duration {
	return min(leastPoll<<min(polls/hintsTaken, 10), slowestHint)
}

// scopeDelay lets the object wait until the external API can be called again.
func (p *pass) scopeDelay() time.Duration {
	return p.shared.scope.park(subjectOf(p.obj).key, time.Now())
}

// around varies a delay by up to a tenth, so that objects made together do not come back
// together.
func (p *pass) around(d time.Duration) time.Duration {
	return spread.Around(d, client.ObjectKeyFromObject(p.obj))
}

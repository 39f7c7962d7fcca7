package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/loop"
)

// reporter tells users, and package loop, what came of a pass.
type reporter struct {
	caller

	// reason and message are what was reported.
	reason, message string
}

// announce shows the states of a pass in trace and status while it runs. An observation changes
// nothing yet, and what ends the pass is in its report.
func (p *reporter) announce(ctx context.Context, d decide.Decision) error {
	reported := d.Action == decide.ActionNone || d.Action == decide.ActionStop
	if d.State != "" && d.Action != decide.ActionObserve && d.Action != decide.ActionPoll && d.Action != decide.ActionConfirm && !reported {
		t := p.texts()
		p.run.SetState(string(d.State), t.Reason(d), t.Message(d, p.facts))
	}
	if d.Row != 14 || d.Action != decide.ActionWriteMarker {
		return nil
	}
	if d.Reason == decide.ReasonMissingAfterRestart { // or it was never created: only a resource that was Ready is known to be lost
		if err := p.recallReady(ctx); err != nil || p.facts.ReadyFor == 0 {
			return err
		}
	}
	p.event("Warning", string(d.Reason), p.texts().Loss(d))
	return nil
}

// report passes to the loop what is reported of d.
func (p *reporter) report(ctx context.Context, d decide.Decision) error {
	if _, known := p.facts.ReadyAfter(d); !known || d.Show.Ready == decide.ShowTrue && p.facts.Differs.Any() {
		if err := p.recallReady(ctx); err != nil {
			return err
		}
	}
	p.showAge()
	r := p.compose(d)
	p.reason, p.message = r.Reason, r.Message
	p.track.reported(r, d, p.facts)
	p.run.Report(r)
	return nil
}

// compose returns what is to be reported of d.
func (p *reporter) compose(d decide.Decision) conditions.Report {
	p.facts.Occurred = p.track.occurred
	return decide.Report(d, p.facts, p.texts())
}

// showAge shows in status from when what it says of the resource is, if this pass could not observe it.
func (p *reporter) showAge() {
	shown := p.obj.TrimtabExternal().External
	if p.facts.Seen.Observed || shown == nil || shown.LastObservedTime != nil {
		return
	}
	at := p.track.observed
	if at.IsZero() { // by an earlier process, which has not said when
		for _, c := range p.obj.TrimtabStatus().Conditions {
			if at.Before(c.LastTransitionTime.Time) {
				at = c.LastTransitionTime.Time
			}
		}
	}
	shown.LastObservedTime = new(metav1.NewTime(at.Truncate(time.Second)))
}

// broken reports a pass that came to no decision.
func (p *reporter) broken(ctx context.Context, cause error) error {
	p.gatherReport()
	d := p.failure(cause)
	if p.facts.Deleting {
		d = decide.Terminating(d)
	}
	return p.report(ctx, d)
}

// failure is the decision of a pass that fails because of what no row is about, such as a read of its own.
func (p *reporter) failure(cause error) decide.Decision {
	p.facts.Last, p.last = decide.Answer{}, answer{failure: &classification{text: plain.Error(cause)}}
	return decide.Decision{State: decide.StateFailed, Reason: decide.ReasonReconcileFailed, Wake: decide.WakeBackoff, Show: decide.Show{Failed: decide.ShowTrue}}
}

// recallReady finds out, once per process and object, the generation for which another process
// last reported Ready. Only what our own field manager wrote counts, and only for generations
// that this object has had. A copy that says less than this process knows needs no look.
func (p *reporter) recallReady(ctx context.Context) error {
	if p.track.recalled {
		return nil
	}
	ready := meta.FindStatusCondition(p.obj.TrimtabStatus().Conditions, api.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return p.recalled(ctx)
	}
	if p.track.lastReport.ReadyFor >= max(1, ready.ObservedGeneration) {
		return nil
	}
	c, err := p.e.ownReady(ctx, p.run.Live(), p.obj)
	if err == nil {
		err = p.recalled(ctx)
	}
	if err != nil {
		p.keepReady(ready, err)
		return err
	}
	if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration > p.track.lastReport.ReadyFor && c.ObservedGeneration <= p.obj.GetGeneration() {
		p.track.lastReport.ReadyFor, p.facts.ReadyFor = c.ObservedGeneration, c.ObservedGeneration
	}
	return nil
}

// recalled notes that what an earlier process reported is known. It fails if the copy at hand is an old one.
func (p *reporter) recalled(ctx context.Context) error {
	if err := p.run.Certain(ctx); err != nil {
		return err
	}
	p.track.recalled = true
	return nil
}

// keepReady reports that the pass failed and leaves Ready as it is: once overwritten, nobody could find out any more
// for which generation it was True.
func (p *reporter) keepReady(ready *metav1.Condition, cause error) {
	if p.facts.Deleting {
		return
	}
	r := p.compose(p.failure(cause))
	for i := range r.Conditions {
		if r.Conditions[i].Type == api.ConditionReady {
			r.Conditions[i] = *ready
		}
	}
	p.run.Report(r)
}

// outcome returns to the loop when the next pass is due.
func (p *reporter) outcome(d decide.Decision) loop.Outcome {
	if d.Wake != decide.WakePoll && d.Wake != decide.WakeSoon && d.Wake != decide.WakeDependency && p.unreflected == nil {
		p.track.rest()
	}
	if p.unreflected != nil && (d.Wake == decide.WakeEvent || d.Wake == decide.WakeDependency || d.Wake == decide.WakeDrift) {
		return loop.AgainAfter(p.track.poll(d.Row, cmp.Or(p.interval(), mostPoll)))
	}
	switch d.Wake {
	case decide.WakeEvent:
		return loop.Terminal(p.reason, errors.New(p.message))
	case decide.WakeBackoff:
		return loop.Fail(errors.New(p.message)).Because(p.reason)
	case decide.WakePoll:
		return loop.AgainAfter(p.pollDelay(d))
	case decide.WakeSoon, decide.WakeNow:
		return loop.AgainAfter(p.track.poll(d.Row, 10*time.Second))
	case decide.WakeScope:
		return loop.AgainAfter(p.scopeDelay())
	case decide.WakeDependency:
		if slices.ContainsFunc(p.waiting, func(d loop.Dep) bool { return d.Why == decide.Unverified }) {
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
func (p *reporter) settled(d decide.Decision) loop.Outcome {
	switch {
	case d.Action == decide.ActionStop:
		return loop.Terminal(p.reason, errors.New(p.message))
	case d.Row == 1 && !p.settings.until.IsZero():
		return loop.AgainAfter(max(time.Second, min(time.Until(p.settings.until), 10*time.Minute)))
	case d.Row == 1:
		return loop.WaitFor(string(d.Reason))
	case p.interval() == 0:
		return loop.Done()
	}
	return loop.After(p.around(p.interval())).LowPriority()
}

// interval is how often the resource is observed; 0 means only after events.
func (p *reporter) interval() time.Duration { return cmp.Or(p.settings.interval, p.e.DriftInterval()) }

// cleanupOutcome returns to the loop when the next pass over an object that is being deleted is
// due.
func (p *reporter) cleanupOutcome(d decide.Decision) loop.CleanupOutcome {
	last := d.Wake == decide.WakeBackoff && p.run.Retry().Last
	if d.Wake != decide.WakePoll && d.Wake != decide.WakeSoon && !last {
		p.track.rest()
	}
	if last { // of the retries of the loop; a resource must not be left behind
		return loop.Keep(p.track.poll(d.Row, mostPoll))
	}
	switch d.Wake {
	case decide.WakeBackoff:
		return loop.CleanupFailed(errors.New(p.message)).Because(p.reason)
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

// pollDelay returns what the API suggested, within limits, or a delay that doubles from 1 s to 30
// s.
func (p *reporter) pollDelay(d decide.Decision) time.Duration {
	grown := p.track.poll(d.Row, 30*time.Second)
	most := cmp.Or(p.e.DriftInterval(), mostPoll)
	for _, hint := range []time.Duration{p.last.after(), p.pollAfter, p.seen.PollAfter} {
		if hint > 0 {
			least := soonest(p.track.polls)
			return bounded(hint, least, max(most, least))
		}
	}
	return grown
}

// soonest returns the shortest delay that a suggestion of the API can bring about after a number
// of observations in a row that found the same operation in progress. A short operation is noticed
// at once; one that never ends is observed ever more rarely.
func soonest(polls int) time.Duration {
	return min(leastPoll<<min(polls/hintsTaken, 10), slowestHint)
}

// scopeDelay makes the object wait until the external API can be called again, and returns for how
// long.
func (p *reporter) scopeDelay() time.Duration {
	return p.shared.scope.park(subjectOf(p.obj).key, time.Now())
}

// around varies a delay by up to a tenth, so that objects created together are not reconciled
// together.
func (p *reporter) around(d time.Duration) time.Duration {
	return spread.Around(d, client.ObjectKeyFromObject(p.obj))
}

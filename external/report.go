package external

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/loop"
)

func observed(id, word string, incarnation int64) *api.ExternalObservation {
	return &api.ExternalObservation{ID: id, Status: word, Incarnation: max(1, incarnation)}
}

// announce lets a trace and people follow the states of a pass as they come. A look
// changes nothing yet.
func (p *pass[T, C, O]) announce(d Decision) {
	if d.State != "" && d.Action != ActionObserve && d.Action != ActionConfirm {
		p.loop.SetState(string(d.State), string(p.reason(d)), p.message(d))
	}
	if d.Row == 14 && d.Action == ActionWriteMarker {
		p.event("Warning", string(ReasonRecreatedAfterLoss),
			fmt.Sprintf("%s was deleted behind the operator's back; it is created again", p.what()))
	}
}

// repaired tells that somebody else had changed the thing: it differed although this very
// spec had been applied before.
func (p *pass[T, C, O]) repaired(differed Changes) {
	status := p.obj.TrimtabStatus()
	if status.AppliedGeneration != p.obj.GetGeneration() || p.facts.Deleting || p.did.created {
		return
	}
	p.event("Normal", "DriftRepaired", fmt.Sprintf("%s had been changed by others; corrected: %s", p.what(), differed))
}

// show writes the decision into conditions and state.
func (p *pass[T, C, O]) show(d Decision) {
	message := p.message(d)
	if p.unreflected != nil {
		message += "; status does not show all of it: " + p.unreflected.Error()
	}
	d.Reason = p.reason(d)
	p.setReady(d.Show.Ready, d.Reason, message)
	p.set(api.ConditionCreating, d.Show.Creating, d.Reason, message)
	p.set(api.ConditionUpdating, d.Show.Updating, d.Reason, message)
	p.set(api.ConditionDeleting, d.Show.Deleting, d.Reason, message)
	p.set(api.ConditionFailed, d.Show.Failed, d.Reason, message)
	if p.e.dependent != nil {
		p.set(api.ConditionDependenciesReady, d.Show.DependenciesReady, ReasonDependenciesNotReady, p.missing())
	}
	if d.Show.Paused == ShowTrue {
		p.loop.Conditions().True(api.ConditionPaused, string(ReasonPaused), p.pausedMessage())
	}
	if len(p.settings.problems) > 0 {
		p.loop.Conditions().True(api.ConditionPolicyInvalid, string(ReasonPolicyInvalid), strings.Join(p.settings.problems, "; "))
	}
	if d.State == "" {
		p.loop.SetState(string(p.lastState()), string(d.Reason), message)
	}
}

// reason lets the external system say in its own word why a thing is not well.
func (p *pass[T, C, O]) reason(d Decision) Reason {
	if (d.Reason == ReasonExternalFailed || d.Reason == ReasonDegraded) && camelCase.MatchString(p.seen.Reason) {
		return Reason(p.seen.Reason)
	}
	return d.Reason
}

// camelCase is what the API server takes for a reason.
var camelCase = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// lastState is the state of the last pass, for decisions that leave it.
func (p *pass[T, C, O]) lastState() State {
	if s := p.obj.TrimtabStatus().State; s != "" {
		return State(s)
	}
	return StatePending
}

// setReady shows Ready. What works but is not as the spec asks for stays ready for the spec that
// it was last seen to be as: kubectl wait, which asks for the present one, sees that in the
// condition's observedGeneration. What never was as a spec asked for is not ready.
func (p *pass[T, C, O]) setReady(s Shown, reason Reason, message string) {
	before := meta.FindStatusCondition(p.obj.TrimtabStatus().Conditions, api.ConditionReady)
	switch {
	case s != ShowTrue || len(p.changes) == 0:
		p.set(api.ConditionReady, s, reason, message)
	case !p.believable(before):
		p.set(api.ConditionReady, ShowFalse, reason, message)
	default:
		still := *before
		still.Reason, still.Message = quietReason(api.ConditionReady, true, reason), message
		p.loop.Conditions().Put(still)
	}
}

// believable tells whether Ready of an earlier pass is true of a spec that this object has had;
// a status restored from a backup may tell of later ones.
func (p *pass[T, C, O]) believable(ready *metav1.Condition) bool {
	return ready != nil && ready.Status == metav1.ConditionTrue &&
		ready.ObservedGeneration > 0 && ready.ObservedGeneration <= p.obj.GetGeneration()
}

// set shows one condition. False is shown whether it was ever true or not: what people see
// of a thing must not depend on what happened to it on the way.
func (p *pass[T, C, O]) set(t string, s Shown, reason Reason, message string) {
	before := meta.FindStatusCondition(p.obj.TrimtabStatus().Conditions, t)
	conditions := p.loop.Conditions()
	switch s {
	case ShowTrue:
		conditions.True(t, quietReason(t, true, reason), message)
	case ShowFalse:
		if t == api.ConditionReady || t == api.ConditionDependenciesReady {
			conditions.False(t, string(reason), message)
			return
		}
		conditions.False(t, quietReason(t, false, reason), "")
	case ShowSame:
		p.same(t, before, reason, message)
	}
}

// same keeps a condition as it was. What was ready stays so for the spec that it was ready
// for. Ready is always there; as long as it is unknown, what keeps it from being known is
// what keeps it so now.
func (p *pass[T, C, O]) same(t string, before *metav1.Condition, reason Reason, message string) {
	switch {
	case t == api.ConditionReady && p.believable(before):
		p.loop.Conditions().Put(*before)
	case t == api.ConditionReady && (before == nil || before.Status != metav1.ConditionFalse):
		p.loop.Conditions().Unknown(t, string(reason), message)
	case before != nil:
		p.loop.Conditions().Set(t, before.Status, before.Reason, before.Message)
	}
}

// quietReason is the reason of a condition that is not about what failed or goes on.
func quietReason(t string, is bool, reason Reason) string {
	switch {
	case t == api.ConditionDependenciesReady && is:
		return "Ready"
	case t == api.ConditionFailed && !is:
		return "NoFailure"
	case !is:
		return "NotInProgress"
	}
	return string(reason)
}

func (p *pass[T, C, O]) missing() string {
	parts := make([]string, len(p.waiting))
	for i, d := range p.waiting {
		parts[i] = fmt.Sprintf("%s %s/%s %s", d.Kind, d.Namespace, d.Name, d.Why)
		if d.Namespace == "" {
			parts[i] = fmt.Sprintf("%s %s %s", d.Kind, d.Name, d.Why)
		}
	}
	return strings.Join(parts, "; ")
}

func (p *pass[T, C, O]) pausedMessage() string {
	text := "changes are paused by annotation " + api.AnnotationPaused
	switch {
	case !p.settings.until.IsZero():
		text += " until " + p.settings.until.UTC().Format(time.RFC3339)
	case p.settings.pause == PauseAll:
		text += ", deletion too; remove it to go on"
	default:
		text += "; remove it to go on"
	}
	if len(p.changes) > 0 {
		text += "; differs: " + p.changes.String()
	}
	return text
}

// outcome tells the loop when the object comes again.
func (p *pass[T, C, O]) outcome(d Decision) loop.Outcome {
	if d.Wake != WakePoll && d.Wake != WakeSoon {
		p.track.rest()
	}
	switch d.Wake {
	case WakeEvent:
		return loop.Terminal(string(p.reason(d)), errors.New(p.message(d)))
	case WakeBackoff:
		return loop.Fail(errors.New(p.message(d))).Because(string(p.reason(d)))
	case WakePoll:
		return loop.AgainAfter(p.pollDelay(d))
	case WakeSoon, WakeNow:
		return loop.AgainAfter(p.track.poll(d.Row, 10*time.Second))
	case WakeScope:
		return loop.AgainAfter(p.scopeDelay())
	case WakeDependency:
		return loop.WaitFor(string(d.Reason), p.waiting...)
	case WakeGrace:
		return loop.AgainAfter(p.facts.Grace - p.facts.SinceUnready)
	case WakeDrift:
	}
	return p.settled(d)
}

// settled is the outcome of a decision that stands until the drift interval.
func (p *pass[T, C, O]) settled(d Decision) loop.Outcome {
	switch {
	case d.Action == ActionStop:
		return loop.Terminal(string(d.Reason), errors.New(p.message(d)))
	case d.Row == 1 && !p.settings.until.IsZero():
		return loop.AgainAfter(max(time.Second, min(time.Until(p.settings.until), 10*time.Minute)))
	case d.Row == 1:
		return loop.WaitFor(string(d.Reason))
	case p.e.driftInterval() == 0:
		return loop.Done()
	}
	return loop.After(p.around(p.e.driftInterval())).LowPriority()
}

// cleanupOutcome tells the loop when an object that is to go comes again.
func (p *pass[T, C, O]) cleanupOutcome(d Decision) loop.CleanupOutcome {
	if d.Wake != WakePoll && d.Wake != WakeSoon {
		p.track.rest()
	}
	switch d.Wake {
	case WakeBackoff:
		return loop.CleanupFailed(errors.New(p.message(d))).Because(string(d.Reason))
	case WakePoll:
		return loop.Keep(p.pollDelay(d))
	case WakeSoon, WakeNow:
		return loop.Keep(p.track.poll(d.Row, 10*time.Second))
	case WakeScope:
		return loop.Keep(p.scopeDelay())
	case WakeEvent, WakeDrift, WakeDependency, WakeGrace:
	}
	return loop.KeepUntilEvent().Because(string(d.Reason))
}

// pollDelay is what the API hinted at, or a delay that doubles from 1 s to 30 s.
func (p *pass[T, C, O]) pollDelay(d Decision) time.Duration {
	grown := p.track.poll(d.Row, 30*time.Second)
	switch {
	case p.last.after > 0:
		return p.last.after
	case p.seen.PollAfter > 0:
		return p.seen.PollAfter
	}
	return grown
}

func (p *pass[T, C, O]) scopeDelay() time.Duration {
	if p.last.after > 0 {
		return p.around(p.last.after) + p.last.after/10
	}
	return p.around(p.track.poll(3, time.Minute))
}

// around varies a delay by up to a tenth, so that objects made together do not come back
// together.
func (p *pass[T, C, O]) around(d time.Duration) time.Duration {
	return spread.Around(d, client.ObjectKeyFromObject(p.obj))
}

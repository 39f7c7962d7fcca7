package decide

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/report"
)

// Report returns all that a decision reports to users: state and message, conditions, event. It is
// pure, and no other code decides what is reported. It describes the present; only Ready speaks of
// the past, by the generation that it was last true for.
func Report(d Decision, f Facts, t Texts) conditions.Report {
	message := t.Message(d, f)
	r := conditions.Report{
		State: string(stateOf(d, f)), Reason: t.Reason(d), Message: message,
		Known: string(d.Reason), Applied: d.Wake == WakeDrift && d.Row == 17,
	}
	v := voice{d: d, f: f, t: t, reason: r.Reason, message: message}
	stalled, reconciling := stalled(d, f), reconciling(d, f)
	v.conditions = make([]metav1.Condition, 0, usualConditions(f, stalled || reconciling))
	v.ready()
	v.progress()
	v.failed()
	v.circumstances()
	if stalled {
		v.is(api.ConditionStalled, r.Reason, message)
	} else if reconciling {
		v.is(api.ConditionReconciling, r.Reason, message)
	}
	// Sorted by type, so that Normalize has nothing to copy.
	slices.SortStableFunc(v.conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	r.Conditions = v.conditions
	r.Event = conditions.Event{Warning: alarming(d, f), Reason: r.Reason, Note: message}
	if !r.Event.Warning && t.Problems != "" {
		r.Event = conditions.Event{Warning: true, Reason: string(ReasonPolicyInvalid), Note: t.Problems}
	}
	return report.Normalize(r)
}

// stateOf is the state to report. If the decision leaves it open, it follows from what was just
// observed, or else is the last one; a process that has reported nothing yet derives it from what
// it knows. Nothing has succeeded while something is left to do.
func stateOf(d Decision, f Facts) State {
	s := d.State
	if s == "" {
		s = lastState(f)
	}
	switch {
	case s != StateSucceeded || !stalled(d, f) && !reconciling(d, f):
		return s
	case f.Seen.Looked:
		return StatePending
	}
	return StateVerifying
}

func lastState(f Facts) State {
	switch {
	case f.Deleting:
		return StateTerminating
	case f.inSync():
		return StateSucceeded
	case f.Seen.Looked:
		return StatePending
	case f.Told.State != "":
		return f.Told.State
	case f.ReadyFor > 0 && f.ReadyFor == f.Generation:
		return StateSucceeded
	case f.Last.Of == ActionCreate, f.ReadyFor == 0 && f.Uncertain():
		return StateCreating
	}
	return StatePending
}

// saidBefore reports whether d repeats how the last observation failed.
func (f Facts) saidBefore(d Decision) bool {
	return f.Scope == ScopeDown && f.Told.Look != "" && d.Reason == f.Told.Look
}

// lookFailed reports whether d says that an observation failed, now or before, and is retried.
func (f Facts) lookFailed(d Decision) bool {
	now := f.Last.Failed && f.Last.Of == ActionObserve && d.Reason == failureReason(f.Last)
	return f.saidBefore(d) || now && !stalled(d, f)
}

// inSync reports whether the last observation of this pass showed that the resource is ours, is
// available and matches the spec.
func (f Facts) inSync() bool {
	return f.Seen.Looked && readiness(f) == ShowTrue && !f.Differs.Any()
}

// stalled reports whether only a user, or a change, can make progress.
func stalled(d Decision, f Facts) bool {
	return d.Action == ActionStop || d.Wake == WakeBackoff && f.LastTry
}

// reconciling reports whether the object makes progress by itself. One that is settled, or was
// paused while it matched the spec, has no progress to make.
func reconciling(d Decision, f Facts) bool {
	switch {
	case d.Row == 1 && !f.Deleting:
		return !f.inSync()
	case d.Action == ActionNone && d.Wake == WakeDrift:
		return false
	}
	return true
}

// alarming reports whether something failed, or a user has to act.
func alarming(d Decision, f Facts) bool {
	switch {
	case d.Show.Failed == ShowTrue, stalled(d, f):
		return true
	case d.Row == 29 && f.Last.Failed && f.Last.Class == ClassConflict:
		return true
	}
	return d.Reason == ReasonDegraded || d.Reason == ReasonRecreatedAfterLoss || d.Reason == ReasonMissingAfterRestart || d.Reason == ReasonExternalDeletion
}

// usualConditions is how many conditions an object has while all goes well; more cost another
// allocation.
func usualConditions(f Facts, unsettled bool) int {
	n := 5 // Ready, Creating, Updating, Deleting, Failed
	if f.Depends {
		n++
	}
	if unsettled {
		n++
	}
	return n
}

// voice builds the conditions of a report.
type voice struct {
	d               Decision
	f               Facts
	t               Texts
	reason, message string
	conditions      []metav1.Condition
}

func (v *voice) say(kind string, is metav1.ConditionStatus, reason, message string, generation int64) {
	v.conditions = append(v.conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

func (v *voice) is(kind, reason, message string) {
	v.say(kind, metav1.ConditionTrue, reason, message, 0)
}

func (v *voice) isNot(kind, reason, message string) {
	v.say(kind, metav1.ConditionFalse, reason, message, 0)
}

// ready sets condition Ready: whether the resource can be used. A resource that works but does not
// match the spec stays ready for the spec that it last matched; kubectl wait, which asks for the
// current generation, sees that in the condition's observedGeneration. A resource that never
// matched a spec is not ready. One that cannot be observed keeps its readiness until more is
// known.
func (v *voice) ready() {
	generation, known := v.f.ReadyAfter(v.d)
	switch {
	case generation > 0 && v.d.Show.Ready == ShowTrue && !v.f.Differs.Any():
		v.say(api.ConditionReady, metav1.ConditionTrue, string(ReasonAvailable), v.t.matches(), generation)
	case generation > 0:
		v.say(api.ConditionReady, metav1.ConditionTrue, string(ReasonAvailable), v.t.matched(v.f, generation), generation)
	case known:
		v.isNot(api.ConditionReady, v.reason, v.message)
	default:
		v.say(api.ConditionReady, metav1.ConditionUnknown, v.reason, v.message, 0)
	}
}

// ReadyAfter returns the generation for which the resource is ready after d, 0 if none. If known
// is false, it may be ready nevertheless.
func (f Facts) ReadyAfter(d Decision) (generation int64, known bool) {
	switch {
	case d.Show.Ready == ShowFalse:
		return 0, true
	case d.Show.Ready == ShowTrue && !f.Differs.Any():
		return f.Generation, true
	}
	return f.ReadyFor, d.Show.Ready == ShowTrue
}

// progress sets the conditions for what is in progress. If the decision leaves one open, the last
// report of this process stands.
func (v *voice) progress() {
	creating, updating := v.f.Told.Creating, v.f.Told.Updating
	v.going(api.ConditionCreating, v.d.Show.Creating, creating, ReasonCreating, "creating ")
	v.going(api.ConditionUpdating, v.d.Show.Updating, updating, ReasonUpdating, "updating ")
	if v.f.Deleting || v.d.Show.Deleting == ShowTrue { // no object has a past in which it was deleted
		v.going(api.ConditionDeleting, v.d.Show.Deleting, v.f.Deleting, ReasonDeleting, "deleting ")
	}
}

func (v *voice) going(kind string, s Shown, before bool, was Reason, doing string) {
	switch {
	case s == ShowTrue:
		v.is(kind, v.reason, v.message)
	case s == ShowSame && before:
		v.is(kind, string(was), doing+v.t.Thing)
	default:
		v.isNot(kind, "NotInProgress", "")
	}
}

// failed sets condition Failed to the outcome of the last call. If the decision leaves it open,
// the last report stands.
func (v *voice) failed() {
	switch {
	case v.d.Show.Failed == ShowTrue:
		v.is(api.ConditionFailed, v.reason, v.message)
	case v.d.Show.Failed == ShowSame && v.f.Told.Failed && !v.isOver():
		v.is(api.ConditionFailed, v.t.FailedReason, v.t.Failed)
	default:
		v.isNot(api.ConditionFailed, "NoFailure", "")
	}
}

// isOver reports whether this pass got past the failure reported before, which had kept a pass
// from a decision or from an observation.
func (v *voice) isOver() bool {
	before := Reason(v.t.FailedReason)
	blind := before == ReasonConnectFailed || before == ReasonCallHangs || before == ReasonUnreachable
	return before == ReasonReconcileFailed || blind && v.f.Seen.Looked
}

// circumstances sets the conditions about what surrounds the resource.
func (v *voice) circumstances() {
	switch {
	case !v.f.Depends || v.f.Deleting:
	case v.f.Dependencies == DependenciesUnready:
		v.isNot(api.ConditionDependenciesReady, string(ReasonDependenciesNotReady), v.t.waiting())
	default:
		v.is(api.ConditionDependenciesReady, "Ready", "")
	}
	if v.d.Show.Paused == ShowTrue {
		v.is(api.ConditionPaused, string(ReasonPaused), v.t.paused(v.f))
	}
	if v.t.Problems != "" {
		v.is(api.ConditionPolicyInvalid, string(ReasonPolicyInvalid), v.t.Problems)
	}
}

// Reported is what the next decision and report need of the last report. The zero value means that
// this process has reported nothing yet.
type Reported struct {
	Told Told
	// FailedReason and FailedText are the reason and message of condition Failed.
	FailedReason, FailedText string
	// ReadyFor is the generation for which the resource was last Ready; 0 if for none.
	ReadyFor int64
}

// Remember returns what the next report needs of the report r on d.
func Remember(r conditions.Report, d Decision, f Facts) Reported {
	s := Reported{Told: Told{State: State(r.State)}}
	s.ReadyFor, _ = f.ReadyAfter(d)
	if f.lookFailed(d) {
		s.Told.Look = d.Reason
	}
	for _, c := range r.Conditions {
		is := c.Status == metav1.ConditionTrue
		switch c.Type {
		case api.ConditionCreating:
			s.Told.Creating = is
		case api.ConditionUpdating:
			s.Told.Updating = is
		case api.ConditionFailed:
			s.Told.Failed, s.FailedReason, s.FailedText = is, c.Reason, c.Message
		}
	}
	return s
}

package decide

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
)

// Report says all that people are told of a decision: state and message, conditions, event. It
// is pure, and nothing judges again what it says. All of it is about the present: what was
// true before is told only of Ready, by the generation for which it was.
func Report(d Decision, f Facts, t Texts) conditions.Report {
	message := t.Message(d, f)
	r := conditions.Report{
		State: string(stateOf(d, f)), Reason: t.Reason(d), Message: message,
		Known: string(d.Reason), Applied: d.Wake == WakeDrift && d.Row == 17,
	}
	v := voice{d: d, f: f, t: t, reason: r.Reason, message: message, conditions: make([]metav1.Condition, 0, usualConditions)}
	v.ready()
	v.progress()
	v.failed()
	v.circumstances()
	if stalled(d, f) {
		v.is(api.ConditionStalled, r.Reason, message)
	} else if reconciling(d, f) {
		v.is(api.ConditionReconciling, r.Reason, message)
	}
	// As Fit orders them, so that it has nothing to copy.
	slices.SortStableFunc(v.conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	r.Conditions = v.conditions
	r.Event = conditions.Event{Warning: alarming(d, f), Reason: r.Reason, Note: message}
	if !r.Event.Warning && t.Problems != "" {
		r.Event = conditions.Event{Warning: true, Reason: string(ReasonPolicyInvalid), Note: t.Problems}
	}
	return r.Fit()
}

// stateOf is the word for people. A decision that leaves it open goes by what was just seen, or
// else keeps the last one; a process that has told nothing yet goes by what it knows. Nothing has
// succeeded while something is left to do.
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

// saidBefore: d repeats how the last look failed.
func (f Facts) saidBefore(d Decision) bool {
	return f.Scope == ScopeDown && f.Told.Look != "" && d.Reason == f.Told.Look
}

// lookFailed: d tells that a look failed, just now or before, and is tried again.
func (f Facts) lookFailed(d Decision) bool {
	now := f.Last.Failed && f.Last.Of == ActionObserve && d.Reason == failureReason(f.Last)
	return f.saidBefore(d) || now && !stalled(d, f)
}

// inSync: the last look of this pass showed the thing to be ours, usable, and as asked.
func (f Facts) inSync() bool {
	return f.Seen.Looked && readiness(f) == ShowTrue && !f.Differs.Any()
}

// stalled: it needs a person, or a change.
func stalled(d Decision, f Facts) bool {
	return d.Action == ActionStop || d.Wake == WakeBackoff && f.LastTry
}

// reconciling: it will get on by itself. What is settled and what somebody paused while it was
// as asked for has no way to go.
func reconciling(d Decision, f Facts) bool {
	switch {
	case d.Row == 1 && !f.Deleting:
		return !f.inSync()
	case d.Action == ActionNone && d.Wake == WakeDrift:
		return false
	}
	return true
}

// alarming: something failed, or needs a person.
func alarming(d Decision, f Facts) bool {
	switch {
	case d.Show.Failed == ShowTrue, stalled(d, f):
		return true
	case d.Row == 29 && f.Last.Failed && f.Last.Class == ClassConflict:
		return true
	}
	return d.Reason == ReasonDegraded || d.Reason == ReasonRecreatedAfterLoss || d.Reason == ReasonMissingAfterRestart || d.Reason == ReasonExternalDeletion
}

// usualConditions is how many conditions an object has at most while all goes well; more cost another
// allocation.
const usualConditions = 7

// voice says conditions.
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

// ready says whether the thing can be used. What works but is not as the spec asks for stays
// ready for the spec that it was last seen to be as: kubectl wait, which asks for the present
// one, sees that in the condition's observedGeneration. What never was as a spec asked for is
// not ready; what nobody can look at is ready for as long as nobody knows better.
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

// ReadyAfter is the generation for which the thing is ready after d, 0 if for none. known is
// false if it may be ready all the same.
func (f Facts) ReadyAfter(d Decision) (generation int64, known bool) {
	switch {
	case d.Show.Ready == ShowFalse:
		return 0, true
	case d.Show.Ready == ShowTrue && !f.Differs.Any():
		return f.Generation, true
	}
	return f.ReadyFor, d.Show.Ready == ShowTrue
}

// progress says what goes on. A decision that leaves it open keeps what this process told.
func (v *voice) progress() {
	creating, updating := v.f.Told.Creating, v.f.Told.Updating
	v.going(api.ConditionCreating, v.d.Show.Creating, creating, ReasonCreating, "creating ")
	v.going(api.ConditionUpdating, v.d.Show.Updating, updating, ReasonUpdating, "updating ")
	v.going(api.ConditionDeleting, v.d.Show.Deleting, v.f.Deleting, ReasonDeleting, "deleting ")
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

// failed says what the last call came to; a decision that leaves it open keeps it.
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

// isOver tells whether this pass has got past what failed before: one that came to no decision, or
// to no look.
func (v *voice) isOver() bool {
	before := Reason(v.t.FailedReason)
	blind := before == ReasonConnectFailed || before == ReasonCallHangs || before == ReasonUnreachable
	return before == ReasonReconcileFailed || blind && v.f.Seen.Looked
}

// circumstances says what surrounds the thing.
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

// Reported is what was reported last, as far as the next decision and report need it. The zero value:
// nothing was reported by this process.
type Reported struct {
	Told Told
	// FailedReason and failedText are those of condition Failed.
	FailedReason, FailedText string
	// ReadyFor is the generation for which the resource was last Ready; 0 if for none.
	ReadyFor int64
}

// Remember keeps of the report r on d what the next one needs.
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

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
		Known: string(d.Reason), Applied: matches(d, f),
	}
	b := reportBuilder{d: d, f: f, t: t, reason: r.Reason, message: message}
	stalled, reconciling := stalled(d, f), reconciling(d, f)
	b.conditions = make([]metav1.Condition, 0, usualConditions(f, stalled || reconciling))
	b.ready()
	b.progress()
	b.failed()
	b.circumstances()
	if stalled {
		b.setTrue(api.ConditionStalled, r.Reason, message)
	} else if reconciling {
		b.setTrue(api.ConditionReconciling, r.Reason, message)
	}
	// Sorted by type, so that Normalize has nothing to copy.
	slices.SortStableFunc(b.conditions, func(x, y metav1.Condition) int { return strings.Compare(x.Type, y.Type) })
	r.Conditions = b.conditions
	r.Event = conditions.Event{Warning: isWarning(d, f), Reason: r.Reason, Note: message}
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
	case f.Seen.Observed:
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
	case f.Seen.Observed:
		return StatePending
	case f.LastReport.State != "":
		return f.LastReport.State
	case f.ReadyFor > 0 && f.ReadyFor == f.Generation:
		return StateSucceeded
	case f.Last.Of == ActionCreate, f.ReadyFor == 0 && f.Uncertain():
		return StateCreating
	}
	return StatePending
}

// repeatsFailure reports whether d repeats how the last observation failed.
func (f Facts) repeatsFailure(d Decision) bool {
	return f.Scope == ScopeDown && f.LastReport.ObserveFailure != "" && d.Reason == f.LastReport.ObserveFailure
}

// observeFailed reports whether d says that an observation failed, now or before, and is retried.
func (f Facts) observeFailed(d Decision) bool {
	now := f.Last.Failed && f.Last.Of == ActionObserve && d.Reason == failureReason(f.Last)
	return f.repeatsFailure(d) || now && !stalled(d, f)
}

// inSync reports whether the last observation of this pass showed that the resource is ours, is
// available and matches the spec.
func (f Facts) inSync() bool {
	return f.Seen.Observed && readiness(f) == ShowTrue && !f.Differs.Any()
}

// matches reports whether the resource is known to match the current spec. One that is paused can match it, too: it was
// changed before the pause, by a process that did not report it any more.
func matches(d Decision, f Facts) bool {
	return d.Row == 17 && d.Wake == WakeDrift || d.Row == 1 && d.Show.Ready == ShowTrue && f.inSync()
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

// isWarning reports whether something failed, or a user has to act.
func isWarning(d Decision, f Facts) bool {
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
	n := 5 // Ready and, once they occurred, Creating, Updating, Deleting, Failed
	if f.Depends {
		n++
	}
	if unsettled {
		n++
	}
	return n
}

// reportBuilder builds the conditions of a report.
type reportBuilder struct {
	d               Decision
	f               Facts
	t               Texts
	reason, message string
	conditions      []metav1.Condition
}

func (b *reportBuilder) add(kind string, is metav1.ConditionStatus, reason, message string, generation int64) {
	b.conditions = append(b.conditions, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}

func (b *reportBuilder) setTrue(kind, reason, message string) {
	b.add(kind, metav1.ConditionTrue, reason, message, 0)
}

func (b *reportBuilder) setFalse(kind, reason, message string) {
	b.add(kind, metav1.ConditionFalse, reason, message, 0)
}

// ready sets condition Ready: whether the resource can be used. A resource that works but does not
// match the spec stays ready for the spec that it last matched; kubectl wait, which asks for the
// current generation, sees that in the condition's observedGeneration. A resource that never
// matched a spec is not ready. One that cannot be observed keeps its readiness until more is
// known.
func (b *reportBuilder) ready() {
	generation, known := b.f.ReadyAfter(b.d)
	switch {
	case generation > 0 && b.d.Show.Ready == ShowTrue && !b.f.Differs.Any():
		b.add(api.ConditionReady, metav1.ConditionTrue, string(ReasonAvailable), b.matches(), generation)
	case generation > 0:
		b.add(api.ConditionReady, metav1.ConditionTrue, string(ReasonAvailable), b.t.matched(b.f, generation), generation)
	case known:
		b.setFalse(api.ConditionReady, b.reason, b.message)
	default:
		b.add(api.ConditionReady, metav1.ConditionUnknown, b.reason, b.message, 0)
	}
}

// matches is [Texts.matches], which mostly is the message.
func (b *reportBuilder) matches() string {
	if b.d.Reason == ReasonAvailable && b.t.Unreflected == "" && b.t.Uncompleted == "" && b.t.Problems == "" {
		return b.message
	}
	return b.t.matches()
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
func (b *reportBuilder) progress() {
	last, occurred := b.f.LastReport, b.f.Occurred
	b.setProgress(api.ConditionCreating, b.d.Show.Creating, last.Creating, occurred.Creating, ReasonCreating, "creating ")
	b.setProgress(api.ConditionUpdating, b.d.Show.Updating, last.Updating, occurred.Updating, ReasonUpdating, "updating ")
	deleting := b.f.Deleting || b.d.Show.Deleting == ShowTrue // no object has a past in which it was deleted
	b.setProgress(api.ConditionDeleting, b.d.Show.Deleting, b.f.Deleting, deleting, ReasonDeleting, "deleting ")
}

func (b *reportBuilder) setProgress(kind string, s Shown, before, occurred bool, was Reason, doing string) {
	switch {
	case s == ShowTrue:
		b.setTrue(kind, b.reason, b.message)
	case s == ShowSame && before:
		b.setTrue(kind, string(was), doing+b.t.Resource)
	case occurred:
		b.setFalse(kind, "NotInProgress", "")
	}
}

// failed sets condition Failed to the outcome of the last call. If the decision leaves it open,
// the last report stands.
func (b *reportBuilder) failed() {
	switch {
	case b.d.Show.Failed == ShowTrue:
		b.setTrue(api.ConditionFailed, b.reason, b.message)
	case b.d.Show.Failed == ShowSame && b.f.LastReport.Failed && !b.hasRecovered():
		b.setTrue(api.ConditionFailed, b.t.FailedReason, b.t.Failed)
	case b.f.Occurred.Failed:
		b.setFalse(api.ConditionFailed, "NoFailure", "")
	}
}

// hasRecovered reports whether this pass got past the failure reported before, which had kept a pass
// from a decision or from an observation.
func (b *reportBuilder) hasRecovered() bool {
	before := Reason(b.t.FailedReason)
	blind := before == ReasonConnectFailed || before == ReasonCallHangs || before == ReasonUnreachable
	return before == ReasonReconcileFailed || blind && b.f.Seen.Observed
}

// circumstances sets the conditions about what surrounds the resource.
func (b *reportBuilder) circumstances() {
	switch {
	case !b.f.Depends || b.f.Deleting:
	case b.f.Dependencies == DependenciesUnready:
		b.setFalse(api.ConditionDependenciesReady, string(ReasonDependenciesNotReady), b.t.waiting())
	default:
		b.setTrue(api.ConditionDependenciesReady, "Ready", "")
	}
	if b.d.Show.Paused == ShowTrue {
		b.setTrue(api.ConditionPaused, string(ReasonPaused), b.t.paused(b.f))
	}
	if b.t.Problems != "" {
		b.setTrue(api.ConditionPolicyInvalid, string(ReasonPolicyInvalid), b.t.Problems)
	}
}

// Reported is what the next decision and report need of the last report. The zero value means that
// this process has reported nothing yet.
type Reported struct {
	LastReport LastReport
	// FailedReason and FailedText are the reason and message of condition Failed.
	FailedReason, FailedText string
	// ReadyFor is the generation for which the resource was last Ready; 0 if for none.
	ReadyFor int64
}

// Remember returns what the next report needs of the report r on d.
func Remember(r conditions.Report, d Decision, f Facts) Reported {
	s := Reported{LastReport: LastReport{State: State(r.State)}}
	s.ReadyFor, _ = f.ReadyAfter(d)
	if f.observeFailed(d) {
		s.LastReport.ObserveFailure = d.Reason
	}
	for _, c := range r.Conditions {
		is := c.Status == metav1.ConditionTrue
		switch c.Type {
		case api.ConditionCreating:
			s.LastReport.Creating = is
		case api.ConditionUpdating:
			s.LastReport.Updating = is
		case api.ConditionFailed:
			s.LastReport.Failed, s.FailedReason, s.FailedText = is, c.Reason, c.Message
		}
	}
	return s
}

// Add adds those of conditions that an object has.
func (o *Occurred) Add(conditions []metav1.Condition) {
	for _, c := range conditions {
		switch c.Type {
		case api.ConditionCreating:
			o.Creating = true
		case api.ConditionUpdating:
			o.Updating = true
		case api.ConditionFailed:
			o.Failed = true
		}
	}
}

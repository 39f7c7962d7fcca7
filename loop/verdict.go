package loop

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/report"
)

// verdict is what an outcome means for the status, where the author has not reported.
type verdict struct {
	ready           metav1.ConditionStatus
	reason, message string
	// known is the loop's own word for reason.
	known string
	// state is shown unless the author set one.
	state string
	// spoken: reason and message say more than a condition Ready that the author set.
	spoken      bool
	failed      bool
	reconciling bool
	stalled     bool
	succeeded   bool
}

// States of objects whose author sets none.
const (
	stateSucceeded   = "Succeeded"
	statePending     = "Pending"
	stateReconciling = "Reconciling"
	stateFailed      = "Failed"
	stateTerminating = "Terminating"
)

// reasonSucceeded is that of an object whose last pass succeeded.
const reasonSucceeded = "Succeeded"

// verdictOf returns the verdict on an outcome. exhausted means that no retry follows a failure.
func verdictOf(o Outcome, exhausted bool, info RetryInfo) verdict {
	v := verdict{ready: metav1.ConditionFalse}
	switch o.kind {
	case kindDone, kindAfter:
		v.ready, v.succeeded, v.state = metav1.ConditionTrue, true, stateSucceeded
		v.known, v.message = reasonSucceeded, "the object matches its spec"
	case kindAgain:
		v.ready, v.reconciling, v.state = metav1.ConditionUnknown, true, stateReconciling
		v.known, v.message = "Reconciling", "work is under way"
	case kindWait:
		v.reconciling, v.spoken, v.state = true, true, statePending
		v.known, v.message = "Waiting", waitMessage(o.deps)
	case kindTerminal:
		v.stalled, v.spoken, v.failed, v.state = true, true, true, stateFailed
		v.known, v.message = "Stalled", plain.Error(o.err)
	case kindFail, kindFailAfter:
		v.spoken, v.failed, v.state = true, true, stateFailed
		v.known, v.message = "ReconcileFailed", plain.Error(o.err)
		v.stalled, v.reconciling = exhausted, !exhausted
		if exhausted && info.Attempt > 0 {
			v.message += fmt.Sprintf("; gave up after %d retries, change the object to try again", info.Attempt)
		}
	}
	v.reason = or(o.reason, v.known)
	return v
}

func verdictOfCleanup(o CleanupOutcome) verdict {
	v := verdict{
		ready: metav1.ConditionFalse, reconciling: true, state: stateTerminating,
		known: "Deleting", message: "cleaning up before the object is deleted",
	}
	if o.kind == cleanupFailed {
		v.known, v.message, v.spoken, v.failed = "CleanupFailed", plain.Error(o.err), true, true
	}
	v.reason = or(o.reason, v.known)
	return v
}

// verdictOfHeld is that of an object which only the finalizers of others keep.
func verdictOfHeld(finalizers []string) verdict {
	return verdict{
		ready: metav1.ConditionFalse, reconciling: true, state: stateTerminating, reason: "Deleting", known: "Deleting",
		message: "cleaned up; kept by finalizers of others: " + strings.Join(finalizers, ", "),
	}
}

func waitMessage(deps []Dep) string {
	if len(deps) == 0 {
		return "waiting for something else"
	}
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = d.String()
	}
	return "waiting for " + strings.Join(parts, ", ")
}

// String returns the dependency and what it lacks, as in "Stream shop/orders: it does not exist".
func (d Dep) String() string {
	name := d.Name
	if d.Namespace != "" {
		name = d.Namespace + "/" + d.Name
	}
	text := strings.TrimSpace(d.Kind + " " + name)
	if d.Why != "" {
		text += ": it " + d.Why
	}
	return text
}

// report is what the status says, given the author's conditions in set. The author's Ready stays; what
// keeps the object from being reconciled is reported beside it.
func (v verdict) report(set *conditions.Set, state string) conditions.Report {
	if set.Get(api.ConditionReady) == nil {
		set.Set(api.ConditionReady, v.ready, v.reason, v.message)
	}
	r := conditions.Report{State: state, Reason: v.reason, Message: v.message, Known: v.known, Applied: v.succeeded}
	if ready := set.Get(api.ConditionReady); !v.spoken {
		r.Reason, r.Message = ready.Reason, ready.Message
	}
	if v.reconciling && set.Get(api.ConditionReconciling) == nil {
		set.True(api.ConditionReconciling, r.Reason, r.Message)
	}
	if v.stalled && set.Get(api.ConditionStalled) == nil {
		set.True(api.ConditionStalled, r.Reason, r.Message)
	}
	failed := set.Get(api.ConditionFailed)
	r.Event = conditions.Event{
		Warning: v.failed || v.stalled || failed != nil && failed.Status == metav1.ConditionTrue,
		Reason:  r.Reason, Note: r.Message,
	}
	r.Conditions = set.All()
	return report.Normalize(r)
}

// stateBeside is the state to show beside the author's conditions: an object that they call not Ready,
// Stalled or Failed has not succeeded.
func (v verdict) stateBeside(set *conditions.Set) string {
	is := func(t string, s metav1.ConditionStatus) bool { c := set.Get(t); return c != nil && c.Status == s }
	switch {
	case !v.succeeded:
		return v.state
	case is(api.ConditionStalled, metav1.ConditionTrue), is(api.ConditionFailed, metav1.ConditionTrue):
		return stateFailed
	case is(api.ConditionReady, metav1.ConditionFalse), is(api.ConditionReady, metav1.ConditionUnknown):
		return statePending
	}
	return v.state
}

func (o Outcome) failed() bool { return o.err != nil }

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

func (k outcomeKind) String() string {
	switch k {
	case kindDone:
		return "Done"
	case kindAgain:
		return "Again"
	case kindAfter:
		return "After"
	case kindWait:
		return "WaitFor"
	case kindFail, kindFailAfter:
		return "Fail"
	case kindTerminal:
		return "Terminal"
	}
	return "unknown"
}

// FromError returns the outcome for the error of an ordinary reconciler: [Done] for nil, else [Fail].
func FromError(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Fail(err)
}

// verdictOfSpecChanged is that of a pass whose author changed what users own.
func verdictOfSpecChanged() verdict {
	return verdict{
		ready: metav1.ConditionFalse, reason: "SpecChanged", known: "SpecChanged", message: errSpecChanged.Error(),
		spoken: true, stalled: true, failed: true, state: stateFailed,
	}
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/status"
)

// verdict is what a pass means for the object's Ready, Reconciling and Stalled, as far as
// the author has not said so himself.
type verdict struct {
	ready           metav1.ConditionStatus
	reason, message string
	reconciling     bool
	stalled         bool
	succeeded       bool
	// state is shown unless the author set one.
	state string
}

// States of objects whose author sets none.
const (
	stateSucceeded   = "Succeeded"
	statePending     = "Pending"
	stateReconciling = "Reconciling"
	stateFailed      = "Failed"
	stateTerminating = "Terminating"
)

// verdictOf reads an outcome. exhausted tells that no retry follows a failure.
func verdictOf(o Outcome, exhausted bool, info RetryInfo) verdict {
	v := verdict{ready: metav1.ConditionFalse, reason: o.reason}
	switch o.kind {
	case kindDone, kindAfter:
		v.ready, v.succeeded, v.state = metav1.ConditionTrue, true, stateSucceeded
		v.reason, v.message = or(o.reason, "Succeeded"), "as asked for"
	case kindAgain:
		v.ready, v.reconciling, v.state = metav1.ConditionUnknown, true, stateReconciling
		v.reason, v.message = or(o.reason, "Reconciling"), "work is under way"
	case kindWait:
		v.reconciling, v.state = true, statePending
		v.reason, v.message = or(o.reason, "Waiting"), waitMessage(o.deps)
	case kindTerminal:
		v.stalled, v.state = true, stateFailed
		v.reason, v.message = or(o.reason, "Stalled"), o.err.Error()
	case kindFail, kindFailAfter:
		v.state, v.reason, v.message = stateFailed, or(o.reason, "ReconcileFailed"), o.err.Error()
		v.stalled, v.reconciling = exhausted, !exhausted
		if exhausted && info.Attempt > 0 {
			v.message += fmt.Sprintf("; gave up after %d retries, change the object to try again", info.Attempt)
		}
	}
	return v
}

func verdictOfCleanup(o CleanupOutcome) verdict {
	v := verdict{
		ready: metav1.ConditionFalse, reconciling: true, state: stateTerminating,
		reason: or(o.reason, "Deleting"), message: "cleaning up before the object goes",
	}
	if o.kind == cleanupFailed {
		v.reason, v.message = or(o.reason, "CleanupFailed"), o.err.Error()
	}
	return v
}

// verdictOfHeld is that of an object which only others' finalizers keep.
func verdictOfHeld(finalizers []string) verdict {
	return verdict{
		ready: metav1.ConditionFalse, reconciling: true, state: stateTerminating, reason: "Deleting",
		message: "cleaned up; kept by finalizers of others: " + strings.Join(finalizers, ", "),
	}
}

func waitMessage(deps []Dep) string {
	if len(deps) == 0 {
		return "waiting for something else"
	}
	parts := make([]string, 0, len(deps))
	for _, d := range deps {
		name := d.Name
		if d.Namespace != "" {
			name = d.Namespace + "/" + d.Name
		}
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", d.Kind, name, d.Why)))
	}
	return "waiting: " + strings.Join(parts, "; ")
}

// show puts v into the conditions that the author has left open.
func (v verdict) show(s *status.Set) {
	if s.Get(api.ConditionReady) == nil {
		s.Set(api.ConditionReady, v.ready, v.reason, v.message)
	}
	ready := s.Get(api.ConditionReady)
	if v.reconciling && s.Get(api.ConditionReconciling) == nil {
		s.True(api.ConditionReconciling, ready.Reason, ready.Message)
	}
	if v.stalled && s.Get(api.ConditionStalled) == nil {
		s.True(api.ConditionStalled, ready.Reason, ready.Message)
	}
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

// FromError turns the error of an ordinary reconciler into an Outcome.
func FromError(err error) Outcome {
	if err == nil {
		return Done()
	}
	return Fail(err)
}

// errSpecChanged is what a pass ends with whose author changed what users own.
var errSpecChanged = errors.New("the controller changed the object's spec in memory, which belongs to its users; " +
	"nothing was written: this is a bug in the controller")

// held lists the finalizers on obj that are not ours.
func held(obj client.Object, own string) []string {
	var others []string
	for _, f := range obj.GetFinalizers() {
		if f != own {
			others = append(others, f)
		}
	}
	return others
}

// hold reports on an object that waits for others' finalizers; there is nothing to do.
func (p *pass[T]) hold(ctx context.Context) ending {
	others := held(p.base, p.c.finalizer)
	if s, ok := reporting(p.base); ok && len(others) > 0 {
		p.run.Obj, _ = p.base.DeepCopyObject().(T)
		p.run.conditions.Keep(s.Conditions, api.ConditionReady, api.ConditionReconciling, api.ConditionStalled)
		v := verdictOfHeld(others)
		p.run.conditions.True(api.ConditionDeleting, v.reason, v.message)
		if err := p.commit(ctx, v); err != nil {
			return p.writeFailed(err)
		}
	}
	return ending{outcome: "Done"}
}

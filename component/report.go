package component

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/loop"
)

// soon is when a pass follows one that only recorded.
const soon = time.Millisecond

// conclude reports on a pass and says when the next one comes.
func (w *worker[T]) conclude(run *loop.Run[T], result engine.Result) loop.Outcome {
	status := run.Obj.GetStatus()
	first := status.ObservedGeneration == 0
	switch {
	case result.Err != nil:
		return w.fail(run, result.Err)
	case result.Recorded && first:
		run.Report(report(StatePending, metav1.ConditionUnknown, "FirstSeen", "the dependents are recorded; they are created next", true))
		return loop.AgainAfter(soon)
	case result.Recorded:
		run.Report(report(StateProcessing, metav1.ConditionUnknown, "Restarting", "the dependents changed; they are applied next", true))
		return loop.AgainAfter(soon)
	case result.Ready:
		r := report(StateReady, metav1.ConditionTrue, "Ready", fmt.Sprintf("all %d dependents are applied and ready", len(status.Inventory)), false)
		r.Applied = true
		run.Report(r)
		return loop.After(w.options.requeue())
	}
	run.Report(report(StateProcessing, metav1.ConditionUnknown, "Processing", result.Waiting, true))
	if result.Again > 0 {
		return loop.AgainAfter(min(result.Again, w.options.timeout()))
	}
	return loop.AgainAfter(w.options.timeout())
}

// fail reports a failure.
func (w *worker[T]) fail(run *loop.Run[T], err error) loop.Outcome {
	r := report(StateError, metav1.ConditionFalse, "Error", err.Error(), true)
	r.Event.Warning = true
	run.Report(r)
	return loop.Fail(err)
}

// deleting reports on a deletion under way.
func deleting(result engine.Result) conditions.Report {
	return report(StateDeleting, metav1.ConditionUnknown, "DeletionProcessing", result.Waiting, true)
}

// report is what the status says.
func report(state string, ready metav1.ConditionStatus, reason, message string, reconciling bool) conditions.Report {
	r := conditions.Report{
		State: state, Reason: reason, Message: message,
		Conditions: []metav1.Condition{{Type: api.ConditionReady, Status: ready, Reason: reason, Message: message}},
		Event:      conditions.Event{Reason: reason, Note: message},
	}
	if reconciling {
		r.Conditions = append(r.Conditions, metav1.Condition{
			Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		})
	}
	return r
}

package conditions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Severity is how bad a condition is that is not as it should be.
type Severity int

// The severities, from the worst.
const (
	// Error means that somebody has to act.
	Error Severity = iota
	// Warning means that something failed and is tried again.
	Warning
	// Info means that work is in progress, or that it waits for something that it requested.
	Info
)

// String returns the name of the severity.
func (s Severity) String() string {
	switch s {
	case Error:
		return "Error"
	case Warning:
		return "Warning"
	case Info:
		return "Info"
	}
	return fmt.Sprintf("Severity(%d)", int(s))
}

// Reason is what an operator knows about a reason of its conditions.
type Reason struct {
	// Severity is how bad it is. The zero value is [Error].
	Severity Severity
	// Remedy tells users what to do about it, as in "create the Secret, or change spec.secretName". It is
	// required for errors and may be empty for others.
	Remedy string
}

// Reasons registers the reasons of an operator's conditions. Severities and remedies follow from the reason, so
// that conditions need no field for them. A reason that is not registered is an [Error], except trimtab's own that say that
// work is in progress or is tried again, such as Waiting and ReconcileFailed. The nil map is empty.
type Reasons map[string]Reason

// Check returns every problem of the registry at once. Call it in a test.
func (r Reasons) Check() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(r)) {
		reason := r[name]
		switch {
		case !camelCase.MatchString(name):
			problems = append(problems, fmt.Errorf("reason %q is not a CamelCase word", name))
		case reason.Severity < Error || reason.Severity > Info:
			problems = append(problems, fmt.Errorf("reason %s has no severity: %s; use Error, Warning or Info", name, reason.Severity))
		case reason.Severity == Error && strings.TrimSpace(reason.Remedy) == "":
			problems = append(problems, fmt.Errorf("reason %s is an Error without a Remedy; tell users what to do, or make it a Warning", name))
		case reason.Severity == Info && (strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Failed")):
			problems = append(problems, fmt.Errorf("reason %s is an Info, but its name says that something failed; make it a Warning, or rename it", name))
		case reason.Severity != Info && strings.HasSuffix(name, "Requested"):
			problems = append(problems, fmt.Errorf("reason %s is a %s, but its name says that something was asked for; make it an Info", name, reason.Severity))
		}
	}
	return errors.Join(problems...)
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Explain returns the message of a condition with the remedy of its reason: "the Secret db does not exist;
// create it". Without a remedy it returns the message.
func (r Reasons) Explain(reason, message string) string {
	if remedy := r[reason].Remedy; remedy != "" {
		return message + "; " + remedy
	}
	return message
}

// Summary returns a condition of type t that sums up the others in list: True if all are as they should be, and
// otherwise the status, reason and message of the worst. A condition of type t in list is left out. Nothing to sum up
// is Unknown, with the reason NotReported. badWhenTrue names types that are not as they should be when they are True, such as
// Degraded; trimtab's own, such as Stalled, are known.
func (r Reasons) Summary(t string, list []metav1.Condition, badWhenTrue ...string) metav1.Condition {
	worst := metav1.Condition{Type: t, Status: metav1.ConditionUnknown, Reason: "NotReported", Message: "nothing has been reported yet"}
	group := none
	for _, c := range list {
		if g := r.group(c, badWhenTrue); c.Type != t && (g < group || g == group && later(c, worst)) {
			worst, group = c, g
		}
	}
	return sum(t, worst, group)
}

// Child is an object on which another one depends, as its status was read.
type Child struct {
	// Name is how messages call it, such as "MariaDB shop/db". Empty leaves it out.
	Name string
	// Generation is the object's. A Ready that is about an earlier generation does not count. Zero means that it is not
	// compared.
	Generation int64
	// ObservedGeneration is that of the object's status, for a Ready without an ObservedGeneration of its own. Zero means
	// that it is not known; such a Ready counts then, of whatever generation it is.
	ObservedGeneration int64
	// BadWhenTrue names types that are not as they should be when they are True, such as Degraded; trimtab's own, such as
	// Stalled, are known.
	BadWhenTrue []string
	// Conditions are those in the status of the object.
	Conditions []metav1.Condition
}

// Mirror returns a condition of type t that says of children what the worst of them says of itself. A child whose
// condition Ready is True is as it should be. Of any other, the worst condition counts: False by severity, then
// Unknown, then True; among equals the one that changed last, and then the first. Without children it is True.
func (r Reasons) Mirror(t string, children ...Child) metav1.Condition {
	mirror := metav1.Condition{Type: t, Status: metav1.ConditionTrue, Reason: "Ready", Message: "there is nothing to wait for"}
	group := none
	for _, child := range children {
		c, g := r.worst(child)
		if child.Name != "" {
			c.Message = strings.TrimSuffix(child.Name+": "+c.Message, ": ")
		}
		if g < group || g == group && later(c, mirror) {
			mirror, group = c, g
		}
	}
	return sum(t, mirror, group)
}

// worst returns the condition that says how a child is.
func (r Reasons) worst(child Child) (metav1.Condition, group) {
	ready := meta.FindStatusCondition(child.Conditions, api.ConditionReady)
	observed := child.ObservedGeneration
	if ready != nil && ready.ObservedGeneration > 0 {
		observed = ready.ObservedGeneration
	}
	switch {
	case ready == nil && len(child.Conditions) == 0:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: "NotReported", Message: "it has not reported yet"}, isUnknown
	case ready != nil && child.Generation > observed && observed > 0:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: "OutOfDate", Message: "it has not reported on its present spec yet"}, isUnknown
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return *ready, isTrue
	}
	worst, group := metav1.Condition{}, none
	for _, c := range child.Conditions {
		if g := r.group(c, child.BadWhenTrue); g < group || g == group && later(c, worst) {
			worst, group = c, g
		}
	}
	if group == isTrue { // it says nothing of Ready
		worst.Status, group = metav1.ConditionUnknown, isUnknown
	}
	return worst, group
}

// sum makes a condition one of type t.
func sum(t string, c metav1.Condition, g group) metav1.Condition {
	switch { // also of a condition that is bad when it is True
	case g <= falseInfo:
		c.Status = metav1.ConditionFalse
	case g == isTrue:
		c.Status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// group orders conditions, from the worst.
type group int

const (
	falseError group = iota
	falseWarning
	falseInfo
	isUnknown
	isTrue
	none
)

func (r Reasons) group(c metav1.Condition, bads []string) group {
	bad := metav1.ConditionFalse
	if _, is := badWhenTrue[c.Type]; is || slices.Contains(bads, c.Type) {
		bad = metav1.ConditionTrue
	}
	switch c.Status {
	case bad:
		return group(r.severity(c))
	case metav1.ConditionUnknown:
		return isUnknown
	case metav1.ConditionTrue, metav1.ConditionFalse:
	}
	return isTrue
}

// severity is that of the reason, or else that of the type, or else that of a reason of trimtab's own.
func (r Reasons) severity(c metav1.Condition) Severity {
	if known, is := r[c.Reason]; is {
		return min(max(known.Severity, Error), Info)
	}
	if s, is := badWhenTrue[c.Type]; is {
		return s
	}
	return ownReasons[c.Reason]
}

// ownReasons are those of the loop and of components that are no errors.
var ownReasons = map[string]Severity{
	"Waiting": Info, "Reconciling": Info, "Deleting": Info,
	"FirstSeen": Info, "Restarting": Info, "Processing": Info, "DeletionProcessing": Info,
	"ReconcileFailed": Warning, "CleanupFailed": Warning, "Retrying": Warning, "DeletionRetrying": Warning,
}

// badWhenTrue are trimtab's types that are not as they should be when they are True, with the least that this means.
var badWhenTrue = map[string]Severity{
	api.ConditionStalled: Error, api.ConditionFailed: Error, api.ConditionPolicyInvalid: Error, api.ConditionPruneBlocked: Error,
	api.ConditionDrifted: Warning, api.ConditionContended: Warning,
	api.ConditionReconciling: Info, api.ConditionCreating: Info, api.ConditionUpdating: Info, api.ConditionDeleting: Info, api.ConditionPaused: Info,
}

// later reports whether a changed later than b. Conditions that changed at the same time are ordered by type, so that the
// order of a list does not matter.
func later(a, b metav1.Condition) bool {
	if c := a.LastTransitionTime.Compare(b.LastTransitionTime.Time); c != 0 {
		return c > 0
	}
	return cmp.Less(a.Type, b.Type)
}

package health

import (
	"fmt"

	cliutils "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
)

// Status is whether an object does what it is for.
type Status string

const (
	// Unknown: nothing can be said.
	Unknown Status = "Unknown"
	// InProgress: the object is not ready, and its controller works on it.
	InProgress Status = "InProgress"
	// Failed: the object will not become ready by itself.
	Failed Status = "Failed"
	// Current: the object is ready as its spec asks.
	Current Status = "Current"
	// Terminating: the object is being deleted.
	Terminating Status = "Terminating"
)

// Result is the health of an object.
type Result struct {
	Status Status
	// Why says what the object lacks, as the end of a sentence about it ("is not ready"). It is
	// empty if the object is Current.
	Why string
}

// Hints tell what the controller of an object will write into its status. The zero value gives none.
// They come from component-operator-runtime.
type Hints struct {
	// ObservedGeneration: the object has a status.observedGeneration, even if that is not set yet.
	ObservedGeneration bool
	// ReadyCondition: the object has a condition Ready, even if that is not set yet.
	ReadyCondition bool
	// Conditions must all be True for the object to be ready.
	Conditions []string
}

// Of returns the health of an object by kstatus and the hints.
func Of(obj *unstructured.Unstructured, hints Hints) Result {
	if obj.GetDeletionTimestamp() != nil {
		return Result{Terminating, "is being deleted"}
	}
	computed, err := cliutils.Compute(obj)
	switch {
	case err != nil:
		return Result{Unknown, "has a status that cannot be read: " + err.Error()}
	case computed.Status == cliutils.FailedStatus:
		return Result{Failed, explained("has failed", computed.Message)}
	case computed.Status != cliutils.CurrentStatus:
		return Result{InProgress, explained(NotReady, computed.Message)}
	}
	if hints.ObservedGeneration {
		if _, found, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); err != nil || !found {
			return Result{InProgress, "has no status.observedGeneration yet"}
		}
	}
	wanted := hints.Conditions
	if hints.ReadyCondition {
		wanted = append([]string{api.ConditionReady}, wanted...)
	}
	for _, t := range wanted {
		if is := condition(obj, t); is != "True" {
			return Result{InProgress, fmt.Sprintf("has condition %s %s", t, is)}
		}
	}
	return Result{Status: Current}
}

// condition returns the status of a condition of obj; Unknown if obj has none of that type.
func condition(obj *unstructured.Unstructured, t string) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == t {
			if is, ok := m["status"].(string); ok {
				return is
			}
		}
	}
	return "Unknown"
}

// explained adds to what an object lacks what its status says of it.
func explained(lacks, message string) string {
	if message == "" {
		return lacks
	}
	return lacks + ": " + message
}

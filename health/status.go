package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	cliutils "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
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
	// Path is the field that says so, such as "status.readyReplicas" or "status.conditions[Ready]".
	// It is empty if the object is Current.
	Path string
}

// Rule judges objects in place of what this package knows of their kind.
type Rule interface {
	// Of returns the health of an object that is not being deleted and whose status is not about an
	// older spec. It must not change or keep the object, and must be safe for concurrent use.
	Of(obj map[string]any) Result
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

// The hints by name.
const (
	HintObservedGeneration = "has-observed-generation"
	HintReadyCondition     = "has-ready-condition"
	HintConditions         = "conditions"
)

// ParseHints reads hints from a list such as "has-observed-generation,conditions=Synced;Healthy". It
// returns also the elements that are no hints.
func ParseHints(list string) (h Hints, unknown []string) {
	for _, hint := range split(list, ",") {
		name, value, hasValue := strings.Cut(hint, "=")
		types := split(value, ";")
		switch {
		case name == HintObservedGeneration && !hasValue:
			h.ObservedGeneration = true
		case name == HintReadyCondition && !hasValue:
			h.ReadyCondition = true
		case strings.TrimSpace(name) == HintConditions && len(types) > 0:
			h.Conditions = append(h.Conditions, types...)
		default:
			unknown = append(unknown, hint)
		}
	}
	slices.Sort(h.Conditions)
	h.Conditions = slices.Compact(h.Conditions)
	return h, unknown
}

func split(list, separator string) []string {
	var out []string
	for item := range strings.SplitSeq(list, separator) {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// Of returns the health of an object: by the rule if there is one, else by kstatus and by what is known of
// its kind, and by the hints. A status that is about an older spec never makes an object Current or Failed.
//
// Without a rule and hints, an object is worse than kstatus says only if something in it says so, such as a
// condition that is False. What clusters may never provide is not waited for: the address of an Ingress, a
// status that no controller has written yet.
func Of(obj *unstructured.Unstructured, hints Hints, rule Rule) Result {
	if obj.GetDeletionTimestamp() != nil {
		return Result{Terminating, "is being deleted", "metadata.deletionTimestamp"}
	}
	o := fields(obj.Object)
	if r, wrong := o.outdated(hints.ObservedGeneration); wrong {
		return r
	}
	var known kind
	var r Result
	if rule != nil {
		r = rule.Of(o)
	} else {
		known = table[obj.GroupVersionKind().GroupKind()]
		r = known.judge(obj)
	}
	if r.Status == Failed && r.Path == conditionPath(api.ConditionStalled) && o.condition(api.ConditionStalled).outdated {
		r = waiting(r.Path, "has condition Stalled of an earlier generation")
	}
	if r.Status != Current {
		r.Why = plain.Text(cmp.Or(r.Why, NotReady))
		return r
	}
	types := slices.Concat(known.server, o.written(known.conditions), hints.Conditions)
	if ready := o.condition(api.ConditionReady); hints.ReadyCondition || ready.outdated && rule == nil {
		types = append(types, api.ConditionReady)
	}
	return o.haveConditions(types)
}

// byKstatus returns the health of an object by kstatus.
func byKstatus(obj *unstructured.Unstructured) Result {
	computed, err := cliutils.Compute(obj)
	switch {
	case err != nil:
		return Result{Unknown, "has a status that cannot be read: " + err.Error(), "status"}
	case computed.Status == cliutils.FailedStatus:
		return Result{Failed, explained("has failed", computed.Message), pathOf(obj, computed)}
	case computed.Status != cliutils.CurrentStatus:
		return Result{InProgress, explained(NotReady, computed.Message), pathOf(obj, computed)}
	}
	return Result{Status: Current}
}

// pathOf returns the field on which kstatus decided.
func pathOf(obj *unstructured.Unstructured, computed *cliutils.Result) string {
	if cliutils.GetLegacyConditionsFn(obj) == nil {
		for _, t := range []string{api.ConditionReconciling, api.ConditionStalled} {
			if fields(obj.Object).condition(t).status == "True" {
				return conditionPath(t)
			}
		}
		return conditionPath(api.ConditionReady)
	}
	if len(computed.Conditions) == 0 || obj.GetKind() == "DaemonSet" {
		return "status"
	}
	switch computed.Conditions[0].Reason {
	case "LessReplicas", "ExtraPods":
		return "status.replicas"
	case "LessReady":
		return "status.readyReplicas"
	case "LessAvailable":
		return "status.availableReplicas"
	case "LessUpdated", "PartitionRollout":
		return "status.updatedReplicas"
	case "LessCurrent":
		return "status.currentReplicas"
	case "LessLabelled":
		return "status.fullyLabeledReplicas"
	case "RevisionMismatch":
		return "status.updateRevision"
	case "ReplicaSetNotAvailable", "ProgressDeadlineExceeded":
		return conditionPath("Progressing")
	case "DeploymentNotAvailable":
		return conditionPath("Available")
	case "ReplicaFailure":
		return conditionPath("ReplicaFailure")
	}
	return "status"
}

// fields are the contents of an object.
type fields map[string]any

const observedPath = "status.observedGeneration"

// outdated reports whether the status is about an older spec, and what that makes of the object. An
// object that observes its generation and does not say which has no status yet.
func (o fields) outdated(observes bool) (Result, bool) {
	observed, found, err := unstructured.NestedInt64(o, "status", "observedGeneration")
	generation := o.generation()
	switch {
	case err != nil:
		return Result{Unknown, "has a status that cannot be read: " + err.Error(), observedPath}, true
	case !found && observes:
		return Result{InProgress, "has no " + observedPath + " yet", observedPath}, true
	case found && generation != 0 && observed != generation:
		return Result{InProgress, fmt.Sprintf("has a status of generation %d, and is at generation %d", observed, generation), observedPath}, true
	}
	return Result{}, false
}

// observed reports whether the status says which generation it is about.
func (o fields) observed() bool {
	_, found, err := unstructured.NestedInt64(o, "status", "observedGeneration")
	return found && err == nil
}

func (o fields) generation() int64 {
	generation, _, _ := unstructured.NestedInt64(o, "metadata", "generation")
	return generation
}

// haveConditions returns what an object is that is to have these conditions True.
func (o fields) haveConditions(types []string) Result {
	for _, t := range types {
		c := o.condition(t)
		switch {
		case c.status == "True" && !c.outdated:
			continue
		case c.outdated:
			return Result{InProgress, "has condition " + t + " of an earlier generation", conditionPath(t)}
		}
		return Result{InProgress, plain.Text(explained("has condition "+t+" "+c.status, c.words())), conditionPath(t)}
	}
	return Result{Status: Current}
}

// condition is a condition of an object.
type condition struct {
	status, reason, message string
	// outdated: it is about an older spec.
	outdated bool
	// written: it is there, and is not the default of its CustomResourceDefinition.
	written bool
}

// never is when conditions were written that are the default of a CustomResourceDefinition, like those of a
// Gateway that waits for a controller.
const never = "1970-01-01T00:00:00Z"

func conditionPath(t string) string { return "status.conditions[" + t + "]" }

// condition returns a condition of an object; its status is Unknown if there is none of that type.
func (o fields) condition(t string) condition {
	list, _, _ := unstructured.NestedFieldNoCopy(o, "status", "conditions")
	conditions, _ := list.([]any)
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] != t {
			continue
		}
		var out condition
		out.status, _ = m["status"].(string)
		out.reason, _ = m["reason"].(string)
		out.message, _ = m["message"].(string)
		observed, _ := m["observedGeneration"].(int64)
		out.outdated = observed != 0 && o.generation() != 0 && observed != o.generation()
		out.status = cmp.Or(out.status, "Unknown")
		out.written = out.status != "Unknown" || m["lastTransitionTime"] != never
		return out
	}
	return condition{status: "Unknown"}
}

// written returns those of some conditions that somebody has written.
func (o fields) written(types []string) (out []string) {
	for _, t := range types {
		if o.condition(t).written {
			out = append(out, t)
		}
	}
	return out
}

// words are what a condition says: its message, or else its reason.
func (c condition) words() string { return cmp.Or(c.message, c.reason) }

// explained adds to what an object lacks what its status says of it.
func explained(lacks, message string) string {
	if message == "" {
		return lacks
	}
	return lacks + ": " + message
}

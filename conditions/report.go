package conditions

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Report is what the status of an object says after a pass, and the event about it. Package loop
// merges it with the conditions of others and writes it.
type Report struct {
	// State is status.state, a single word.
	State string
	// Reason is a CamelCase word and Message a sentence that explain the state. They describe the
	// present.
	Reason, Message string
	// Conditions are those of trimtab's own types that the object has now. An ObservedGeneration of
	// zero means the generation of the pass. Times are ignored.
	Conditions []metav1.Condition
	// Event is recorded if the report differs from the last one in more than its message. One without a
	// reason is not recorded.
	Event Event
	// Applied means that the object matches its current spec.
	Applied bool
	// Known is the reason in metrics: one of few words, which do not differ from object to object. Empty means "Other".
	Known string
}

// Event is a Kubernetes event.
type Event struct {
	// Warning means that something failed or that somebody has to act.
	Warning bool
	// Reason is a CamelCase word.
	Reason string
	// Note is the message.
	Note string
}

// Type returns the type of the event, Normal or Warning.
func (e Event) Type() string {
	if e.Warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Ready returns the condition Ready of the report, or nil.
func (r Report) Ready() *metav1.Condition {
	return meta.FindStatusCondition(r.Conditions, api.ConditionReady)
}

// Merge returns the conditions to write for an object whose status has the conditions in earlier: those
// of the report and those of others, sorted by type. A condition of the report without an
// ObservedGeneration gets generation. A condition whose status did not change keeps its
// LastTransitionTime; the others get now.
func (r Report) Merge(earlier []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	merged := make([]metav1.Condition, 0, max(len(earlier), len(r.Conditions)))
	for _, c := range r.Conditions {
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = generation
		}
		if before := meta.FindStatusCondition(earlier, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		merged = append(merged, c)
	}
	for _, c := range earlier {
		if r.Foreign(c.Type) {
			merged = append(merged, c)
		}
	}
	slices.SortFunc(merged, byType)
	return merged
}

// Foreign reports whether conditions of type t belong to others: the report has none, and t is not one
// of trimtab's own types.
func (r Report) Foreign(t string) bool {
	return meta.FindStatusCondition(r.Conditions, t) == nil && !slices.Contains(own, t)
}

func byType(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }

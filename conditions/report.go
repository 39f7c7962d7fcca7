package conditions

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Report is all that the status of one object says after a pass, and the event about it. It is
// finished: whoever writes it merges it with what others wrote, and judges nothing.
type Report struct {
	// State is the one word that status.state shows.
	State string
	// Reason is why, in one CamelCase word, and Message in one sentence; both are about the
	// present.
	Reason, Message string
	// Conditions are all of trimtab's own that hold now. An ObservedGeneration of zero means the
	// generation that the pass saw; times do not count.
	Conditions []metav1.Condition
	// Event is recorded if the report is news. The zero value records none.
	Event Event
	// Applied: the object is as its present spec asks.
	Applied bool
	// Known is the registered reason for metrics. Empty means Reason.
	Known string
}

// Event is a Kubernetes event.
type Event struct {
	// Warning: something failed, or needs a person.
	Warning bool
	// Reason is CamelCase.
	Reason string
	Note   string
}

// Type is Normal or Warning.
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

// Fit returns the report with texts that Kubernetes takes, and with one condition of each type, in
// the order of types; of two of one type the later counts.
func (r Report) Fit() Report {
	if !fit(r.Conditions) {
		list := slices.Clone(r.Conditions)
		for i := range list {
			list[i].Reason, list[i].Message = plain.Reason(list[i].Reason), plain.Line(list[i].Message)
		}
		slices.Reverse(list) // so that the later of one type comes first
		slices.SortStableFunc(list, byType)
		r.Conditions = slices.CompactFunc(list, func(a, b metav1.Condition) bool { return a.Type == b.Type })
	}
	r.Reason, r.Message = plain.Reason(r.Reason), plain.Line(r.Message)
	if r.Event.Reason != "" {
		r.Event.Reason, r.Event.Note = plain.Reason(r.Event.Reason), plain.Line(r.Event.Note)
	}
	return r
}

// fit reports whether Fit has nothing to do for conditions.
func fit(list []metav1.Condition) bool {
	for i, c := range list {
		if i > 0 && list[i-1].Type >= c.Type || plain.Reason(c.Reason) != c.Reason || plain.Line(c.Message) != c.Message {
			return false
		}
	}
	return true
}

// Merge returns the conditions for the status of an object that has those in earlier: the ones of the
// report, about generation unless they say otherwise, and those of others. A condition whose status
// did not change keeps its time. The order is by type, so that equal sets are equal lists.
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

// Foreign reports whether a condition of type t that an object has belongs to another: it is not in
// the report, and is none of trimtab's own types.
func (r Report) Foreign(t string) bool {
	return meta.FindStatusCondition(r.Conditions, t) == nil && !slices.Contains(own, t)
}

func byType(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }

// News is what makes a report news: a change of the state, of Ready, of the reason of the present, of
// what annotations hold back. A failure that repeats itself is none.
type News struct {
	State, Ready, Reason, Paused, Policy string
}

// News returns what the report says as far as it makes news.
func (r Report) News() News { return newsOf(r.State, r.Conditions) }

// NewsOf returns what a status says as far as it makes news.
func NewsOf(s *api.Status) News { return newsOf(s.State, s.Conditions) }

func newsOf(state string, conditions []metav1.Condition) News {
	n := News{State: state}
	for _, t := range [...]string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
		if c := meta.FindStatusCondition(conditions, t); c != nil {
			n.Reason = c.Reason
		}
	}
	is := func(t string) string {
		if c := meta.FindStatusCondition(conditions, t); c != nil {
			return string(c.Status)
		}
		return ""
	}
	n.Ready, n.Paused, n.Policy = is(api.ConditionReady), is(api.ConditionPaused), is(api.ConditionPolicyInvalid)
	return n
}

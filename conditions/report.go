package conditions

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Report is all that people are told of one object after a pass. It is finished: whoever
// writes it merges it with what others wrote, and judges nothing.
type Report struct {
	// State is the one word that status.state shows.
	State string
	// Reason is why, in one CamelCase word, and Message in one sentence; both are about the
	// present.
	Reason, Message string
	// Conditions are all of trimtab's own that hold now. One of ObservedGeneration zero is
	// about the generation that the pass saw; times do not count.
	Conditions []metav1.Condition
	// Event is what to tell if this is news. The zero value tells nothing.
	Event Event
	// Applied: the object is as the present spec asks.
	Applied bool
	// Known is the registered reason for metrics, if Reason is somebody else's word.
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

// Fit returns the report with texts that Kubernetes takes, and in the order of conditions.
func (r Report) Fit() Report {
	set := SetOf(r.Conditions)
	r.Conditions = set.list
	Sort(r.Conditions)
	r.Reason, r.Message = plain.Reason(r.Reason), plain.Line(r.Message)
	if r.Event.Reason != "" {
		r.Event.Reason, r.Event.Note = plain.Reason(r.Event.Reason), plain.Line(r.Event.Note)
	}
	return r
}

// News tells two reports apart that people are told of: by state, by Ready, by the reason of
// the present, by what the annotations hold back. A failure that repeats itself is none.
type News struct {
	State, Ready, Reason, Paused, Policy string
}

// News of a report.
func (r Report) News() News { return newsOf(r.State, r.Conditions) }

// NewsOf reads from a status what the pass that wrote it told.
func NewsOf(s *api.Status) News { return newsOf(s.State, s.Conditions) }

func newsOf(state string, conditions []metav1.Condition) News {
	n := News{State: state}
	for _, t := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
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

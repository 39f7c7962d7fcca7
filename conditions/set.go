// Package conditions keeps conditions: set during a pass, merged with what others wrote, and
// compared with what the server has, so that nothing unchanged is sent.
package conditions

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Set is the conditions that one pass reports. The zero value is empty and ready to use.
type Set struct {
	list []metav1.Condition
}

// SetOf returns a set of conditions. Of two of one type the later counts.
func SetOf(list []metav1.Condition) Set {
	s := Set{list: make([]metav1.Condition, 0, len(list))}
	for _, c := range list {
		s.Put(c)
	}
	return s
}

// True sets condition t to True.
func (s *Set) True(t, reason, message string) { s.Set(t, metav1.ConditionTrue, reason, message) }

// False sets condition t to False.
func (s *Set) False(t, reason, message string) { s.Set(t, metav1.ConditionFalse, reason, message) }

// Unknown sets condition t to Unknown.
func (s *Set) Unknown(t, reason, message string) {
	s.Set(t, metav1.ConditionUnknown, reason, message)
}

// Set sets condition t to any status.
func (s *Set) Set(t string, is metav1.ConditionStatus, reason, message string) {
	s.Put(metav1.Condition{Type: t, Status: is, Reason: reason, Message: message})
}

// Put sets a condition that may be about an earlier generation than the one that the pass
// sees: its ObservedGeneration. Zero is the one that the pass sees. The time of c does not count.
func (s *Set) Put(c metav1.Condition) {
	c.Reason, c.Message = plain.Reason(c.Reason), plain.Line(c.Message)
	meta.SetStatusCondition(&s.list, c)
}

// Get returns condition t, or nil if it has not been set. The result must not be changed.
func (s *Set) Get(t string) *metav1.Condition { return meta.FindStatusCondition(s.list, t) }

// All returns a copy of the conditions that have been set.
func (s *Set) All() []metav1.Condition { return slices.Clone(s.list) }

// Keep sets conditions of trimtab's own types as an earlier pass did, but for those in
// except.
func (s *Set) Keep(earlier []metav1.Condition, except ...string) {
	for _, c := range earlier {
		if slices.Contains(own, c.Type) && !slices.Contains(except, c.Type) {
			s.Set(c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// Merge returns the conditions to report, given those that the object has: the ones set
// in this pass, about generation unless they say otherwise, and those of others. A condition
// whose status did not change keeps its time. The order is by type, so that equal sets are
// equal lists.
func (s *Set) Merge(earlier []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	merged := make([]metav1.Condition, 0, len(earlier)+len(s.list))
	for _, c := range s.list {
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
		if s.Foreign(c.Type) {
			merged = append(merged, c)
		}
	}
	Sort(merged)
	return merged
}

// Foreign tells whether a condition of type t that an object has is somebody else's: not
// set in this pass, and none of trimtab's own types.
func (s *Set) Foreign(t string) bool { return s.Get(t) == nil && !slices.Contains(own, t) }

// Own returns the conditions of trimtab's own types.
func Own(list []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range list {
		if slices.Contains(own, c.Type) {
			out = append(out, c)
		}
	}
	return out
}

// Sort orders conditions by type.
func Sort(list []metav1.Condition) {
	slices.SortFunc(list, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
}

// Equal tells whether two lists say the same, in whatever order.
func Equal(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		y := meta.FindStatusCondition(b, x.Type)
		if y == nil || x.Status != y.Status || x.Reason != y.Reason || x.Message != y.Message ||
			x.ObservedGeneration != y.ObservedGeneration || !x.LastTransitionTime.Equal(&y.LastTransitionTime) {
			return false
		}
	}
	return true
}

// own are the condition types that trimtab sets on users' kinds; one of them that a pass
// does not set is to go.
var own = []string{
	api.ConditionReady, api.ConditionReconciling, api.ConditionStalled,
	api.ConditionCreating, api.ConditionUpdating, api.ConditionDeleting,
	api.ConditionFailed, api.ConditionPaused, api.ConditionDependenciesReady, api.ConditionPolicyInvalid,
}

package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Set is a set of conditions that a pass reports. The zero value is empty and ready to use.
type Set struct {
	list []metav1.Condition
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

// Put sets a condition with its ObservedGeneration, which may be earlier than the generation of the
// pass. Zero means the generation of the pass. The LastTransitionTime of c is ignored.
func (s *Set) Put(c metav1.Condition) {
	c.Reason, c.Message = plain.Reason(c.Reason), plain.Line(c.Message)
	meta.SetStatusCondition(&s.list, c)
}

// Get returns condition t, or nil if it has not been set. The result must not be changed.
func (s *Set) Get(t string) *metav1.Condition { return meta.FindStatusCondition(s.list, t) }

// All returns a copy of the conditions that have been set.
func (s *Set) All() []metav1.Condition { return slices.Clone(s.list) }

// Keep sets the conditions in earlier that have trimtab's own types, except those whose types are in
// except.
func (s *Set) Keep(earlier []metav1.Condition, except ...string) {
	for _, c := range earlier {
		if slices.Contains(own, c.Type) && !slices.Contains(except, c.Type) {
			s.Set(c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// own are the condition types that trimtab sets on users' kinds. Those that a pass does not set are
// removed.
var own = []string{
	api.ConditionReady, api.ConditionReconciling, api.ConditionStalled,
	api.ConditionCreating, api.ConditionUpdating, api.ConditionDeleting,
	api.ConditionFailed, api.ConditionPaused, api.ConditionDependenciesReady, api.ConditionPolicyInvalid,
	api.ConditionDrifted, api.ConditionContended, api.ConditionPruneBlocked,
}

// Package status keeps conditions: set during a pass, merged with what others wrote, and
// compared with what the server has so that nothing unchanged is sent.
package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set is the conditions that one pass reports.
type Set struct {
	list []metav1.Condition
}

// True sets condition t to True.
func (s *Set) True(t, reason, message string) { s.set(t, metav1.ConditionTrue, reason, message) }

// False sets condition t to False.
func (s *Set) False(t, reason, message string) { s.set(t, metav1.ConditionFalse, reason, message) }

// Unknown sets condition t to Unknown.
func (s *Set) Unknown(t, reason, message string) { s.set(t, metav1.ConditionUnknown, reason, message) }

// Get returns condition t, or nil if this pass has not set it.
func (s *Set) Get(t string) *metav1.Condition { return meta.FindStatusCondition(s.list, t) }

func (s *Set) set(t string, st metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.list, metav1.Condition{Type: t, Status: st, Reason: reason, Message: message})
}

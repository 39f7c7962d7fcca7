package loop

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEqualConditions(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	all := func(metav1.Condition) bool { return true }
	one := metav1.Condition{Type: "A", Status: "True", Reason: "R", Message: "m", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(noon)}
	other := metav1.Condition{Type: "B", Status: "True", Reason: "R", LastTransitionTime: metav1.NewTime(noon)}
	if !equalConditions([]metav1.Condition{one, other}, []metav1.Condition{other, one}, all) {
		t.Error("the order makes a difference")
	}
	changes := map[string]func(*metav1.Condition){
		"type":       func(c *metav1.Condition) { c.Type = "C" },
		"status":     func(c *metav1.Condition) { c.Status = "False" },
		"reason":     func(c *metav1.Condition) { c.Reason = "S" },
		"message":    func(c *metav1.Condition) { c.Message = "n" },
		"generation": func(c *metav1.Condition) { c.ObservedGeneration = 2 },
		"time":       func(c *metav1.Condition) { c.LastTransitionTime = metav1.NewTime(noon.Add(time.Second)) },
	}
	for what, change := range changes {
		changed := one
		change(&changed)
		if equalConditions([]metav1.Condition{one}, []metav1.Condition{changed}, all) {
			t.Errorf("a different %s makes no difference", what)
		}
	}
	foreign := other
	foreign.Message = "another"
	if !equalConditions([]metav1.Condition{other}, []metav1.Condition{foreign}, ownCondition) {
		t.Error("a condition of others makes a difference")
	}
	if !ownCondition(metav1.Condition{Type: "Stalled"}) {
		t.Error("Stalled is not one of trimtab's own types")
	}
}

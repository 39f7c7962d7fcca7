package conditions_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
)

// A condition that a pass no longer reports is removed if its type is one of trimtab's own. Conditions
// of others stay. The time is that of the last change of the status.
func ExampleReport_Merge() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	earlier := []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "NoWater", LastTransitionTime: metav1.NewTime(noon)},
		{Type: "Stalled", Status: "True", Reason: "NoWater", LastTransitionTime: metav1.NewTime(noon)},
		{Type: "Insured", Status: "True", Reason: "Paid", LastTransitionTime: metav1.NewTime(noon)},
	}
	var set conditions.Set
	set.True("Ready", "Full", "the tank is full")

	report := conditions.Report{Conditions: set.All()}
	for _, c := range report.Merge(earlier, 2, noon.Add(time.Hour)) {
		fmt.Println(c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	// Output:
	// Insured True Paid 12:00:00
	// Ready True Full 13:00:00
}

// The remedy and the severity of a condition follow from its reason. The parent shows its worst child.
func ExampleReasons() {
	reasons := conditions.Reasons{
		"SecretMissing": {Severity: conditions.Error, Remedy: "create it, or change spec.secretName"},
		"DatabaseBusy":  {Severity: conditions.Warning},
	}
	fmt.Println(reasons.Check())

	var set conditions.Set
	set.False("InputReady", "SecretMissing", reasons.Explain("SecretMissing", "the Secret db does not exist"))
	set.False("DatabaseReady", "DatabaseBusy", "the database answers late")
	child := append(set.All(), reasons.Summary("Ready", set.All()))

	parent := reasons.Mirror("PlacementReady", conditions.Child{Name: "PlacementAPI placement", Conditions: child})
	fmt.Println(parent.Type, parent.Status, parent.Reason)
	fmt.Println(parent.Message)
	// Output:
	// <nil>
	// PlacementReady False SecretMissing
	// PlacementAPI placement: the Secret db does not exist; create it, or change spec.secretName
}

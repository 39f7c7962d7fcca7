package report_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/report"
)

// TestNormalize checks that a report gets texts that the API server accepts, in one order, whatever the
// author passed, and that a normal report is not copied.
func TestNormalize(t *testing.T) {
	given := []metav1.Condition{
		{Type: "Ready", Status: "True", Reason: "Old", Message: "first"},
		{Type: "Failed", Status: "False", Reason: "no reason", Message: "two\nlines"},
		{Type: "Ready", Status: "False", Reason: "New", Message: "last", ObservedGeneration: 3},
	}
	before := slices.Clone(given)
	got := report.Normalize(conditions.Report{Conditions: given, Reason: "a word", Message: " a  b "})
	want := conditions.Report{
		Conditions: []metav1.Condition{
			{Type: "Failed", Status: "False", Reason: "NoReason", Message: "two lines"},
			{Type: "Ready", Status: "False", Reason: "New", Message: "last", ObservedGeneration: 3},
		},
		Reason: "AWord", Message: "a b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Normalize (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("Normalize changed its argument (-before +after):\n%s", diff)
	}
	if again := report.Normalize(got); &again.Conditions[0] != &got.Conditions[0] {
		t.Error("a normal report is copied")
	}
}

package metric_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/metric"
)

// TestWords: labels have words of Kubernetes and of trimtab, and none that others make up.
func TestWords(t *testing.T) {
	t.Parallel()
	because := func(reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason}}
	}
	for _, tc := range []struct {
		why  string
		err  error
		want string
	}{
		{"a reason of Kubernetes", because(metav1.StatusReasonConflict), "Conflict"},
		{"an admission webhook sends what it likes", because("pod shop/web-7 is not allowed"), "Other"},
		{"none", because(metav1.StatusReasonUnknown), "Other"},
		{"no answer of the API server", errors.New("connection refused"), "Other"},
	} {
		if got := metric.Reason(tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.why, got, tc.want)
		}
	}
	for _, state := range []string{
		component.StatePending, component.StateProcessing, component.StateReady,
		component.StateDeletionPending, component.StateDeleting, component.StateError, "Succeeded", "Recreating",
	} {
		if metric.State(state) != state {
			t.Errorf("state %s is shown as %s", state, metric.State(state))
		}
	}
	if got := metric.State("Pumping tank-7"); got != "Other" {
		t.Errorf("an author's state is shown as %s", got)
	}
}

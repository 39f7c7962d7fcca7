package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAwayIsToldTheSame checks that an object that has tried a down API and waits for its next
// turn keeps its status, so that an outage costs no writes.
func TestUnavailableKeepsItsReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why   string
		facts []func(*Facts)
		words []func(*Texts)
	}{
		"alive":         {"the usual case", []func(*Facts){readyFor(3)}, nil},
		"never seen":    {"nothing was created yet", []func(*Facts){creation(CreationNone)}, nil},
		"going":         {"the finalizer stays meanwhile", []func(*Facts){deleting}, nil},
		"took long":     {"the reason is that of the failure", []func(*Facts){timeout, readyFor(3)}, nil},
		"misconfigured": {"what is said of annotations is said once", []func(*Facts){readyFor(3)}, []func(*Texts){problematic}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k Reported
			tried := of(append([]func(*Facts){failed(ActionObserve, ClassTransient)}, tt.facts...)...)
			d := Next(tried)
			first := Report(d, tried, words(append(tt.words, saying("connection refused"))...))
			k = Remember(first, d, tried)
			for range 3 {
				waits := of(append(tt.facts, notObserved, scoped(ScopeDown))...)
				waits.Last, waits.LastReport, waits.ReadyFor = Answer{}, k.LastReport, k.ReadyFor
				d := Next(waits)
				again := Report(d, waits, words(append(tt.words, func(t *Texts) {
					t.Shut, t.FailedReason, t.Failed = "it refuses connections", k.FailedReason, k.FailedText
				})...))
				k = Remember(again, d, waits)
				if diff := cmp.Diff(first, again, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
					t.Fatalf("%s: after the try, and while it waits for the next (-tried +waits):\n%s", tt.why, diff)
				}
			}
		})
	}
}

func problematic(t *Texts) { t.Problems = "annotation trimtab.dev/adoption is not understood" }

// TestAwayIsForgotten checks that the API's next outage is reported as such after an observation
// has succeeded.
func TestUnavailableIsForgotten(t *testing.T) {
	t.Parallel()
	var k Reported
	for _, f := range []Facts{of(failed(ActionObserve, ClassTransient)), of()} {
		f.LastReport = k.LastReport
		d := Next(f)
		k = Remember(Report(d, f, words(saying("connection refused"))), d, f)
	}
	f := of(notObserved, scoped(ScopeDown))
	f.LastReport = k.LastReport
	if d := Next(f); d.Reason != ReasonUnreachable {
		t.Errorf("after a successful observation an outage is reported as %s", d.Reason)
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/loop"
)

// recallingRun is a pass of which the copy at hand is certain, or it is unknown whether it is.
type recallingRun struct {
	Run
	uncertain error
	reported  *conditions.Report
}

func (r *recallingRun) Live() client.Reader             { return nil } // managedFields are at hand
func (r *recallingRun) Retry() loop.RetryInfo           { return loop.RetryInfo{} }
func (r *recallingRun) Terms() loop.Terms               { return loop.Terms{} }
func (r *recallingRun) Certain(context.Context) error   { return r.uncertain }
func (r *recallingRun) Report(report conditions.Report) { r.reported = &report }

// TestRecallReady: what another process reported of Ready counts if this object can have been so, and is left as it is if that cannot be
// found out in time.
func TestRecallReady(t *testing.T) {
	late := errors.New("too late")
	tests := map[string]struct {
		why       string
		ready     int64 // the generation of Ready; the object has 2
		deleting  bool
		uncertain error
		want      int64
		keeps     bool
	}{
		"before":         {why: "the resource matched the former spec", ready: 1, want: 1},
		"now":            {why: "it matches this one", ready: 2, want: 2},
		"never":          {why: "a generation that the object has not had was written by somebody else", ready: 3},
		"late":           {why: "once overwritten, nobody could find out any more", ready: 1, uncertain: late, keeps: true},
		"late, deleting": {why: "of an object in deletion nobody asks", ready: 1, deleting: true, uncertain: late},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := visit()
			run := &recallingRun{uncertain: tt.uncertain}
			p.run = run
			p.obj.SetGeneration(2)
			if tt.deleting {
				now := metav1.Now()
				p.obj.SetDeletionTimestamp(&now)
			}
			was := metav1.Condition{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: tt.ready}
			p.obj.TrimtabStatus().Conditions = []metav1.Condition{was}
			p.obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: ourManagers + "thing", Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:status":{"f:conditions":{"k:{\"type\":\"%s\"}":{"f:status":{},"f:observedGeneration":{}}}}}`, api.ConditionReady)),
			}})
			p.gatherReport()
			if err := p.recallReady(t.Context()); !errors.Is(err, tt.uncertain) || p.facts.ReadyFor != tt.want {
				t.Errorf("%s: Ready for %d, error %v, want Ready for %d, error %v", tt.why, p.facts.ReadyFor, err, tt.want, tt.uncertain)
			}
			if keeps := run.reported != nil; keeps != tt.keeps {
				t.Fatalf("%s: it is reported again: %t, want %t", tt.why, keeps, tt.keeps)
			}
			if tt.keeps {
				if got := meta.FindStatusCondition(run.reported.Conditions, api.ConditionReady); got == nil || *got != was {
					t.Errorf("%s: Ready is reported as %+v, was %+v", tt.why, got, was)
				}
			}
		})
	}
}

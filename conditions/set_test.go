package conditions_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestMerge(t *testing.T) {
	earlier := []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "Broken", LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 1},
		{Type: "Stalled", Status: "True", Reason: "Broken", LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 1},
		{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.NewTime(noon)},
	}
	later := noon.Add(time.Hour)
	tests := map[string]struct {
		why  string
		set  func(*conditions.Set)
		want []metav1.Condition
	}{
		"E0-11 a status that stays keeps its time": {
			why: "another reason is no transition",
			set: func(s *conditions.Set) { s.False("Ready", "StillBroken", "") },
			want: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "StillBroken", LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 2},
				{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.NewTime(noon)},
			},
		},
		"what is about an earlier generation says so": {
			why: "it works as it was asked for once, not as it is now",
			set: func(s *conditions.Set) {
				s.Put(metav1.Condition{Type: "Ready", Status: "False", Reason: "not a reason", ObservedGeneration: 1})
			},
			want: []metav1.Condition{
				{Type: "Ready", Status: "False", Reason: "NotAReason", LastTransitionTime: metav1.NewTime(noon), ObservedGeneration: 1},
				{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.NewTime(noon)},
			},
		},
		"E0-11 a status that changes takes the time of now": {
			why: "re-entry", set: func(s *conditions.Set) { s.True("Ready", "Fixed", "") },
			want: []metav1.Condition{
				{Type: "Ready", Status: "True", Reason: "Fixed", LastTransitionTime: metav1.NewTime(later), ObservedGeneration: 2},
				{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.NewTime(noon)},
			},
		},
		"E0-15 ours that is not set goes, others' stays": {
			why: "Stalled is shown only while it is true", set: func(*conditions.Set) {},
			want: []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "Because", LastTransitionTime: metav1.NewTime(noon)}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s conditions.Set
			tc.set(&s)
			if diff := cmp.Diff(tc.want, conditions.Report{Conditions: s.All()}.Merge(earlier, 2, later)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

// TestNoDuplicates plays random passes one after the other.
func TestNoDuplicates(t *testing.T) {
	t.Run("E0-12 one entry per type after ten thousand operations", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		types := []string{api.ConditionReady, api.ConditionFailed, api.ConditionCreating, "Mine", "Theirs"}
		list := []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "Because"}}
		for i := range 10_000 {
			var s conditions.Set
			for range random.IntN(4) {
				s.Set(types[random.IntN(len(types))], []metav1.ConditionStatus{"True", "False", "Unknown"}[random.IntN(3)], "R", fmt.Sprint(i))
			}
			list = conditions.Report{Conditions: s.All()}.Merge(list, int64(i), noon)
			seen := map[string]bool{}
			for _, c := range list {
				if seen[c.Type] {
					t.Fatalf("operation %d leaves two conditions of type %s", i, c.Type)
				}
				seen[c.Type] = true
			}
			if !seen["Theirs"] {
				t.Fatalf("operation %d lost somebody else's condition", i)
			}
		}
	})
}

func TestKeep(t *testing.T) {
	var s conditions.Set
	s.Keep([]metav1.Condition{{Type: "Ready", Status: "True", Reason: "A"}, {Type: "Failed", Status: "False", Reason: "B"}}, "Ready")
	if s.Get("Ready") != nil || s.Get("Failed") == nil {
		t.Errorf("kept %v, %v; want Failed alone", s.Get("Ready"), s.Get("Failed"))
	}
}

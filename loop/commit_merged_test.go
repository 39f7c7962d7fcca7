package loop

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/conditions"
)

// TestMergedIn checks with random conditions that mergedIn predicts whether Merge changes anything.
func TestMergedIn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	some := func() []metav1.Condition {
		var list []metav1.Condition
		for _, kind := range []string{"Failed", "Ready", "Theirs"} {
			if random.IntN(3) == 0 {
				continue
			}
			list = append(list, metav1.Condition{
				Type: kind, Status: metav1.ConditionStatus([]string{"True", "False"}[random.IntN(2)]), Reason: []string{"A", "B"}[random.IntN(2)],
				ObservedGeneration: 2 - random.Int64N(2)*random.Int64N(2), LastTransitionTime: metav1.NewTime(noon),
			})
		}
		if random.IntN(10) == 0 {
			slices.Reverse(list)
		}
		return list
	}
	outcomes := map[bool]int{}
	for range 20_000 {
		earlier, r := some(), conditions.Report{Conditions: some()}
		if random.IntN(2) == 0 {
			r = conditions.Report{Conditions: slices.Clone(earlier)}
		}
		for i := range r.Conditions {
			if r.Conditions[i].ObservedGeneration == 2 && random.IntN(2) == 0 {
				r.Conditions[i].ObservedGeneration = 0
			}
		}
		merged := r.Merge(earlier, 2, noon.Add(time.Hour))
		same := slices.Equal(merged, earlier)
		if got := mergedIn(r, earlier, 2); got != same {
			t.Fatalf("%t for\n%v\nof\n%v; merged (-had +merged):\n%s", got, r.Conditions, earlier, cmp.Diff(earlier, merged))
		}
		outcomes[same]++
	}
	if outcomes[true] < 1000 || outcomes[false] < 1000 {
		t.Errorf("outcomes %v do not show much", outcomes)
	}
}

package fault

import (
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// TestNATS plays the NATS sample.
func TestNATS(t *testing.T) { explore(t, scenarios.NATS()) }

func explore(t *testing.T, all []fault.Scenario) {
	t.Helper()
	total := map[fault.Kind]int{}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			r := fault.Run(t, s)
			for kind, n := range r.Schedules {
				total[kind] += n
			}
			t.Logf("%d writes, %d calls, schedules %v, left out %v, %s", r.Writes, r.Calls, r.Schedules, r.Pruned, r.Took)
		})
	}
	t.Logf("schedules: %v", total)
}

package wild

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// bug is a finding that docs/in-the-wild.md explains.
type bug struct {
	// says is part of the report of the finding.
	says string
	why  string
}

// play explores a scenario. It must find the bugs that are known, and nothing else.
func play(t *testing.T, s fault.Scenario, known ...bug) {
	t.Helper()
	r := fault.Explore(t, s)
	t.Log(r)
	seen := map[bug]bool{}
	for _, f := range r.Findings {
		found := false
		for _, b := range known {
			if strings.Contains(strings.Join(strings.Fields(f.Text), " "), b.says) {
				found, seen[b] = true, true
			}
		}
		if !found {
			t.Error(f.Text)
		}
	}
	for _, b := range known {
		if !seen[b] {
			t.Errorf("no finding says %q any more: %s", b.says, b.why)
		}
	}
}

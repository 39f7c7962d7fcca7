// Package wild plays public operators, as their authors publish them, through every crash and every single fault
// of a scenario. Each operator has a module of its own in a folder of this one, because it decides about the versions
// of what it requires. docs/in-the-wild.md lists what was found. make deep runs them.
package wild

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Bug is a finding that docs/in-the-wild.md explains.
type Bug struct {
	// Says is part of the report of the finding, with single spaces between words.
	Says string
	// Why it is broken.
	Why string
}

// Play explores a scenario. It must find the bugs that are known, and nothing else.
func Play(t *testing.T, s fault.Scenario, known ...Bug) {
	t.Helper()
	PlayWith(t, s, nil, known...)
}

// PlayWith is Play with options.
func PlayWith(t *testing.T, s fault.Scenario, opts []fault.Option, known ...Bug) {
	t.Helper()
	r := fault.Explore(t, s, opts...)
	t.Log(r)
	seen := map[Bug]bool{}
	for _, f := range r.Findings {
		found := false
		for _, b := range known {
			if strings.Contains(strings.Join(strings.Fields(f.Text), " "), b.Says) {
				found, seen[b] = true, true
			}
		}
		if !found {
			t.Error(f.Text)
		}
	}
	for _, b := range known {
		if !seen[b] {
			t.Errorf("no finding says %q any more: %s", b.Says, b.Why)
		}
	}
}

// Package wild plays public operators, as their authors publish them, through every crash and every single fault
// of a scenario. Each operator has a module of its own in a folder of this one, because it decides about the versions
// of what it requires. docs/in-the-wild.md lists what was found. make deep runs them.
package wild

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Bug is what docs/in-the-wild.md explains. It is found if it is the first thing that is wrong in a finding.
type Bug struct {
	Invariant fault.Invariant
	// Says is part of the sentence that says what is wrong.
	Says string
	// Then is part of a sentence about what follows from it and is wrong in the same finding, if there is such.
	Then string
	// Why it is broken.
	Why string
}

// Play explores a scenario. It must play all schedules, at least so many, and find the bugs that are known,
// and nothing else.
func Play(t *testing.T, s fault.Scenario, atLeast int, known ...Bug) {
	t.Helper()
	PlayWith(t, s, atLeast, nil, known...)
}

// PlayWith is Play with options.
func PlayWith(t *testing.T, s fault.Scenario, atLeast int, opts []fault.Option, known ...Bug) {
	t.Helper()
	r := fault.Explore(t, s, opts...)
	t.Log(r)
	found, wrong := check(r, atLeast, known)
	for _, f := range found {
		t.Log(f)
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// check tells which findings are known bugs, and what else is wrong with a report.
func check(r fault.Report, atLeast int, known []Bug) (found, wrong []string) {
	seen := make([]bool, len(known))
	for _, f := range r.Findings {
		first := f.Violations[0]
		i := slices.IndexFunc(known, func(b Bug) bool { return b.is(first) })
		if i < 0 || slices.ContainsFunc(f.Violations[1:], func(v fault.Violation) bool { return !explained(v, known, known[i]) }) {
			wrong = append(wrong, f.Text)
			continue
		}
		seen[i] = true
		found = append(found, fmt.Sprintf("%s: %s (%s)", f.Token, first.Message, first.Invariant))
	}
	for i, b := range known {
		if !seen[i] {
			wrong = append(wrong, fmt.Sprintf("no finding breaks %s and says %q any more: %s", b.Invariant, b.Says, b.Why))
		}
	}
	played := 0
	for _, n := range r.Schedules {
		played += n
	}
	if played < atLeast {
		wrong = append(wrong, fmt.Sprintf("only %d schedules were played, which were at least %d", played, atLeast))
	}
	if r.Unplayed > 0 {
		wrong = append(wrong, fmt.Sprintf("%d schedules were not played", r.Unplayed))
	}
	return found, wrong
}

func (b Bug) is(v fault.Violation) bool {
	return v.Invariant == b.Invariant && strings.Contains(v.Message, b.Says)
}

// explained is whether something that is wrong besides the first is a known bug itself, or follows from the first.
func explained(v fault.Violation, known []Bug, first Bug) bool {
	return first.Then != "" && strings.Contains(v.Message, first.Then) ||
		slices.ContainsFunc(known, func(b Bug) bool { return b.is(v) })
}

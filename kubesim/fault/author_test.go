package fault

import (
	"slices"
	"strings"
	"testing"
)

// TestPanics proves that an operator is found which loses what it knows when code that it was given
// panics, after an answer and after one that was lost; and that one which does not is not.
func TestPanics(t *testing.T) {
	for _, f := range Explore(t, toyLife(""), Only(Panics)).Findings {
		t.Errorf("a toy that looks before it lets go: %s", f.Text)
	}
	for bug, kind := range map[string]string{
		"forgets in a panic":               "/" + panics + "@",
		"forgets in a panic over an error": "+" + panics + "@",
	} {
		s := toyLife(bug)
		for _, f := range Explore(t, s, Only(Crashes, Faults)).Findings {
			t.Errorf("%s, without a panic:\n%s", bug, f.Text)
		}
		r := Explore(t, s, Only(Panics))
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Token, kind) })
		if i < 0 {
			t.Errorf("%s: no finding by %q: %v", bug, kind, r.texts())
			continue
		}
		if broken := r.Findings[i].Violations[0].Invariant; broken != "I2" {
			t.Errorf("%s: %s broke %s, want I2", bug, r.Findings[i].Token, broken)
		}
		if r.Schedules[Panics] < 3 {
			t.Errorf("%s: %v were played; want one after each change and one after each lost answer", bug, r.Schedules)
		}
	}
}

// TestWantedPanics proves that a panic that a schedule wants is not held against the operator.
func TestWantedPanics(t *testing.T) {
	_, reference, w := prepared(t, toyLife(""))
	r := w.play(t, job{schedule: schedule{{kind: panics, at: 0}}, like: reference.run})
	if n := len(r.run.Processes[0].Panics); n > 0 || r.err != nil || len(r.run.Faults) != 1 {
		t.Errorf("%d panics, %v, faults %v", n, r.err, r.run.Faults)
	}
}

package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestPanics proves that an operator is found which loses what it knows when code that it was given
// panics, after an answer and after one that was lost; and that one which does not is not.
func TestPanics(t *testing.T) {
	for _, f := range Explore(t, toyLife(""), Only(Panics)).Findings {
		t.Errorf("a toy that looks before it lets go: %s", f.Text)
	}
	for bug, kind := range map[string]string{
		"forgets in a panic":               "/" + schedule.Panic + "@",
		"forgets in a panic over an error": "+" + schedule.Panic + "@",
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

// TestWantedPanics proves that a panic that a schedule wants is no finding.
func TestWantedPanics(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Panic, At: 0}}, Like: e.reference.Run})
	if n := len(r.Run.Processes[0].Panics); n > 0 || r.Err != nil || len(r.Run.Faults) != 1 {
		t.Errorf("%d panics, %v, faults %v", n, r.Err, r.Run.Faults)
	}
}

// TestCollapse proves that a panic that nobody recovers is a finding, and not the end of the test.
func TestCollapse(t *testing.T) {
	r := Explore(t, toyLife("asks beside the reconcile"), Only(Panics))
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Violations[0].Invariant == "I17" })
	if i < 0 {
		t.Fatalf("a panic in a goroutine was not found: %v", r.texts())
	}
	if got := r.Findings[i].Violations[0].Message; !strings.Contains(got, "process 0 ended: the author's code panicked at beside the reconcile") {
		t.Errorf("it is told as %q", got)
	}
}

// TestHangs proves that code which never returns is held until the process ends and no longer, and
// that there is no other finding then.
func TestHangs(t *testing.T) {
	r := Explore(t, toyLife(""), Only(Hangs))
	for _, f := range r.Findings {
		t.Errorf("a toy that goes on after a restart: %s", f.Text)
	}
	if r.Schedules[Hangs] < 2 {
		t.Errorf("%v were played; want one after each change", r.Schedules)
	}
	e, w := prepared(t, toyLife(""))
	got := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Hang, At: 0}}, Like: e.reference.Run, Last: 1})
	if got.Run.Held == nil || got.Leaked || len(got.Run.Processes) != 2 {
		t.Errorf("held %+v, leaked %v, %d processes; want something held, nothing left, and a restart", got.Run.Held, got.Leaked, len(got.Run.Processes))
	}
}

// TestAtMost proves that schedules are left out evenly, and counted.
func TestAtMost(t *testing.T) {
	s := toyLife("")
	whole := Explore(t, s, Only(Faults)).Schedules[Faults]
	r := Explore(t, s, Only(Faults), AtMost(7, Faults))
	if r.Schedules[Faults] != 7 || r.Pruned[Thinned] != whole-7 {
		t.Errorf("%v were played and %v left out of %d; want 7", r.Schedules, r.Pruned, whole)
	}
	if r := Explore(t, s, Only(Faults), AtMost(0, Faults), AtMost(3, Panics)); r.Schedules[Faults] != whole {
		t.Errorf("0 played %v instead of all, %d", r.Schedules, whole)
	}
}

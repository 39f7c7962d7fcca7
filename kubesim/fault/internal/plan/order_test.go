package plan

import (
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestOrder proves that crashes come first and lost answers next, that nothing is lost, and that the first
// few of each kind are from everywhere in a run.
func TestOrder(t *testing.T) {
	t.Parallel()
	var jobs []run.Job
	for i := range 100 {
		for _, kind := range []string{schedule.Failed, schedule.Race, schedule.LostAnswer, schedule.CrashAfter} {
			jobs = append(jobs, single(kind, i))
		}
	}
	ordered := Order(slices.Clone(jobs))
	if len(ordered) != len(jobs) {
		t.Fatalf("%d of %d schedules are left", len(ordered), len(jobs))
	}
	seen := map[schedule.Disturbance]bool{}
	for i, j := range ordered {
		d := j.Schedule[0]
		seen[d] = true
		if first := i < 100; first != (d.Kind == schedule.CrashAfter) {
			t.Fatalf("number %d is %s", i, d)
		}
		if second := i >= 100 && i < 200; second != (d.Kind == schedule.LostAnswer) {
			t.Fatalf("number %d is %s", i, d)
		}
	}
	if len(seen) != len(jobs) {
		t.Errorf("%d different schedules, want %d", len(seen), len(jobs))
	}
	quarters := map[int]bool{}
	for _, j := range ordered[:4] {
		quarters[j.Schedule[0].At/25] = true
	}
	if len(quarters) < 3 {
		t.Errorf("the first four crashes are in %d quarters of the run", len(quarters))
	}
	rest := map[string]int{}
	for _, j := range ordered[200:220] {
		rest[j.Schedule[0].Kind]++
	}
	if rest[schedule.Failed] != 10 || rest[schedule.Race] != 10 {
		t.Errorf("kinds are not played in turn: %v", rest)
	}
}

// TestSpread proves that each number is there once.
func TestSpread(t *testing.T) {
	t.Parallel()
	for n := range 70 {
		all := spread(n)
		slices.Sort(all)
		for i, v := range all {
			if i != v {
				t.Fatalf("spread(%d) has %v", n, all)
			}
		}
		if len(all) != n {
			t.Fatalf("spread(%d) has %d numbers", n, len(all))
		}
	}
}

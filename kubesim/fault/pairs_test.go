package fault

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPairs proves that a sample has no pair twice and none at a single call, that there is an end of them, and that a pair
// that begins at its crash goes on as one that is played from the beginning.
func TestPairs(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	const endless = 1 << 20
	jobs := e.plan.Pairs(endless)
	singles := len(e.plan.Crashes()) + len(e.plan.Faults()) + len(e.plan.Stale())
	if n := singles * (singles - 1) / 2; len(jobs) >= n || len(jobs) < n*9/10 {
		t.Errorf("%d pairs of %d disturbances, want a few less than %d: those at one call are none", len(jobs), singles, n)
	}
	seen := map[string]bool{}
	shortened := 0
	for _, j := range jobs {
		token := j.Schedule.String()
		if seen[token] {
			t.Fatalf("%s is there twice", token)
		}
		seen[token] = true
		if j.From == nil || shortened == 40 {
			continue
		}
		shortened++
		j.Like = e.reference.Run
		short := w.Play(t, j)
		j.From = nil
		long := w.Play(t, j)
		if diff := cmp.Diff(lines(long), lines(short)); diff != "" {
			t.Errorf("%s: (-from the beginning +from the snapshot)\n%s", token, diff)
		}
		if len(short.Run.Faults) != len(long.Run.Faults) {
			t.Errorf("%s: %d disturbances from the beginning, %d from the snapshot", token, len(long.Run.Faults), len(short.Run.Faults))
		}
	}
	if shortened < 40 {
		t.Errorf("%d pairs begin at a crash", shortened)
	}
}

package corpus

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestJournal proves that a bug in how an operator recovers from a crash is found by what disturbs recoveries,
// and by nothing else.
func TestJournal(t *testing.T) {
	single := []fault.Kind{fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks}
	invariants := func(r fault.Report) (all []string) {
		for _, f := range r.Findings {
			all = append(all, string(f.Violations[0].Invariant))
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for name, test := range map[string]struct {
		bug  Bug
		want string
	}{
		"correct": {NoBug, ""},
		"clears":  {ClearsJournal, "I3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := story("journal", SetupJournal(test.bug))
			s.Steps = slices.Delete(s.Steps, 1, 2)
			if d := explore(t, s, single...); d.broken != nil {
				t.Errorf("single disturbances break %v, want nothing", d.broken)
			}
			whole, pruned := fault.Explore(t, s, fault.Only(fault.Recoveries), fault.Unpruned()), fault.Explore(t, s, fault.Only(fault.Recoveries))
			if diff := cmp.Diff(invariants(whole), invariants(pruned)); diff != "" {
				t.Errorf("pruned, other invariants are broken (-whole +pruned):\n%s", diff)
			}
			if n := pruned.Schedules[fault.Recoveries]; pruned.Pruned[fault.SameState] == 0 || whole.Schedules[fault.Recoveries] <= n {
				t.Errorf("%d schedules, whole %d; pruned %v", n, whole.Schedules[fault.Recoveries], pruned.Pruned)
			}
			switch d := explore(t, s, fault.Recoveries); {
			case d.schedules == 0:
				t.Error("no recovery was disturbed")
			case test.want == "" && d.broken != nil:
				t.Errorf("disturbed recoveries break %v, want nothing", d.broken)
			case test.want != "" && !slices.Contains(d.broken, test.want):
				t.Errorf("disturbed recoveries break %v, want %s", d.broken, test.want)
			}
		})
	}
}

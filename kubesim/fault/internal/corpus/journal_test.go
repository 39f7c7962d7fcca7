package corpus

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestJournal proves that a bug in how an operator recovers from a crash is found by what disturbs recoveries, whoever that is,
// and by nothing else.
func TestJournal(t *testing.T) {
	single := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Absences, fault.Forgeries, fault.Panics,
	}
	for name, test := range map[string]struct {
		bug  Bug
		want string
	}{
		"correct": {NoBug, ""},
		"clears":  {ClearsJournal, "I3"},
		"stays":   {StaysRecovering, "I1"},
		"writes":  {WritesSpec, "I1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := story("journal", SetupJournal(test.bug))
			s.Steps = slices.Delete(s.Steps, 1, 2)
			s.Races = []fault.Step{fault.Merge(item(), `{"spec":{"text":"two"}}`)}
			if d := explore(t, s, single...); d.broken != nil {
				t.Errorf("single disturbances break %v, want nothing", d.broken)
			}
			whole, d := exploreWith(t, s, fault.Only(fault.Recoveries), fault.Unpruned()), explore(t, s, fault.Recoveries)
			if diff := cmp.Diff(whole.broken, d.broken); diff != "" {
				t.Errorf("pruned, other invariants are broken (-whole +pruned):\n%s", diff)
			}
			if d.schedules == 0 || whole.schedules <= d.schedules {
				t.Errorf("%d schedules, %d without pruning", d.schedules, whole.schedules)
			}
			switch {
			case test.want == "" && d.broken != nil:
				t.Errorf("disturbed recoveries break %v, want nothing", d.broken)
			case test.want != "" && !slices.Contains(d.broken, test.want):
				t.Errorf("disturbed recoveries break %v, want %s", d.broken, test.want)
			}
		})
	}
}

package corpus

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestJournal proves that a bug in how an operator recovers from a crash is found by what disturbs recoveries, whoever that is,
// and by nothing else. TRIMTAB_DEEP=1 plays more bugs, and compares with what pruning leaves out.
func TestJournal(t *testing.T) {
	single := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Absences, fault.Forgeries, fault.Panics,
	}
	others := []fault.Kind{fault.Contention, fault.Replacements, fault.SlowCalls, fault.OldCaches}
	for name, test := range map[string]struct {
		bug  Bug
		want string
		// also is what disturbs recoveries besides what is played by default; alone it finds nothing.
		also []fault.Kind
		// rarely: the long form alone plays it.
		rarely bool
	}{
		"correct":  {bug: NoBug, also: others},
		"clears":   {bug: ClearsJournal, want: "I3"},
		"gives up": {bug: StopsTrying, want: "I1", also: []fault.Kind{fault.Contention}, rarely: true},
		"stays":    {bug: StaysRecovering, want: "I1", rarely: true},
		"writes":   {bug: WritesSpec, want: "I1", rarely: true},
	} {
		if test.rarely && !deep() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := story("journal", SetupJournal(test.bug))
			s.Steps = slices.Delete(s.Steps, 1, 2)
			s.Races = []fault.Step{fault.Merge(item(), `{"spec":{"text":"two"}}`)}
			if d := exploreWith(t, s, fault.Only(append(test.also, single...)...), some()); d.broken != nil {
				t.Errorf("single disturbances break %v, want nothing", d.broken)
			}
			if test.also != nil { // otherwise that is what comes next
				if d := explore(t, s, fault.Recoveries); d.broken != nil {
					t.Errorf("recoveries without %v break %v, want nothing", test.also, d.broken)
				}
			}
			kinds := append(test.also, fault.Recoveries)
			d := explore(t, s, kinds...)
			if d.schedules == 0 {
				t.Error("nothing was played")
			}
			if deep() {
				prunesWell(t, s, kinds, d)
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

// prunesWell proves that what is left out breaks nothing else.
func prunesWell(t *testing.T, s fault.Scenario, kinds []fault.Kind, pruned detection) {
	t.Helper()
	whole := exploreWith(t, s, fault.Only(kinds...), fault.Unpruned())
	if diff := cmp.Diff(whole.broken, pruned.broken); diff != "" {
		t.Errorf("pruned, other invariants are broken (-whole +pruned):\n%s", diff)
	}
	if whole.schedules <= pruned.schedules {
		t.Errorf("%d schedules, %d without pruning", pruned.schedules, whole.schedules)
	}
}

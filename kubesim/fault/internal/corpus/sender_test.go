package corpus

import (
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestSender proves that writes which arrive from a process that is dead are found where nothing else finds the bug: a
// crash before or after the write, and a lost answer, do no harm if the next pass looks first.
func TestSender(t *testing.T) {
	others := []fault.Kind{
		fault.Crashes, fault.Faults, fault.Stale, fault.Duplicates, fault.Delays, fault.Breaks, fault.Races, fault.Recoveries,
	}
	for name, test := range map[string]struct {
		bug  Bug
		want string
	}{
		"correct": {NoBug, ""},
		"no key":  {NoKey, "I3"},
		"no lock": {NoLock, "I1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := story("sender "+name, SetupSender(test.bug))
			fixedSize(&s)
			if d := exploreWith(t, s, fault.Only(others...), some()); d.broken != nil {
				t.Errorf("other disturbances break %v, want nothing", d.broken)
			}
			switch d := explore(t, s, fault.LateWrites); {
			case d.schedules == 0:
				t.Error("no write was late")
			case test.want == "" && d.broken != nil:
				t.Errorf("late writes break %v, want nothing", d.broken)
			case test.want != "" && !slices.Contains(d.broken, test.want):
				t.Errorf("late writes break %v, want %s", d.broken, test.want)
			}
		})
	}
}

package corpus

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestDriftOfTheCorrect proves that operators which restore what they made are not blamed, in whatever style they write it.
func TestDriftOfTheCorrect(t *testing.T) {
	for name, s := range map[string]fault.Scenario{
		"renter":        story("renter", SetupRenter(NoBug)),
		"apply":         story("apply", SetupApplier),
		"cluster scope": inCluster(),
		"elected":       elected(),
	} {
		t.Run(name, func(t *testing.T) {
			if d := exploreWith(t, s, fault.Only(fault.Drift), fault.Unpruned(fault.Alternating)); d.broken != nil || d.schedules < 4 {
				t.Errorf("%d schedules break %v; want nothing", d.schedules, d.broken)
			}
		})
	}
}

// TestDrift proves that an operator is found which does not notice what others do to the part that it made, by no other kind, and
// that one which does notice is not blamed.
func TestDrift(t *testing.T) {
	for bug, want := range map[Bug][]string{NoBug: nil, LooksOnce: {"I1"}, TrustsMarks: {"I1"}} {
		t.Run(cmp.Or(string(bug), "correct"), func(t *testing.T) {
			s := story("tender", SetupTender(bug))
			s.ExternalAPI = nil
			d := explore(t, s, fault.Drift)
			if diff := gocmp.Diff(want, d.broken); diff != "" || d.schedules < 6 || slices.Contains(d.kinds, "") {
				t.Errorf("broken by %d schedules of kinds %v (-want +got):\n%s", d.schedules, d.kinds, diff)
			}
			if d := exploreWith(t, s, some()); d.broken != nil {
				t.Errorf("the usual kinds break %v, want nothing", d.broken)
			}
		})
	}
}

package corpus

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestFinalizersOfOthers proves that an operator which removes the finalizer of another controller is found, also if the object
// is gone then, and that one which removes its own is not blamed.
func TestFinalizersOfOthers(t *testing.T) {
	for bug, want := range map[Bug][]string{NoBug: nil, ClearsFinalizers: {"I10"}, ReplacesFinalizers: {"I10"}} {
		t.Run(cmp.Or(string(bug), "correct"), func(t *testing.T) {
			s := story("holder", SetupHolder(bug))
			s.ExternalAPI = nil
			d := explore(t, s, fault.Contention)
			if diff := gocmp.Diff(want, d.broken); diff != "" || d.schedules < 2 || slices.Contains(d.kinds, "") {
				t.Errorf("broken by %d schedules of kinds %v (-want +got):\n%s", d.schedules, d.kinds, diff)
			}
			if d := exploreWith(t, s, some()); d.broken != nil {
				t.Errorf("the usual kinds break %v, want nothing", d.broken)
			}
		})
	}
}

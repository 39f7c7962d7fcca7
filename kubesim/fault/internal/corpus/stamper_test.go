package corpus

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestContention proves that an operator which drops what another controller writes all the time, or never gets through,
// is found, and that one which tries again is not blamed.
func TestContention(t *testing.T) {
	tests := map[string]struct {
		bug  Bug
		want []string
		// alone is set if no other kind finds it.
		alone bool
	}{
		"correct":              {NoBug, nil, true},
		"all annotations":      {ReplacesAnnotations, []string{"I10"}, false},
		"a list of conditions": {ReplacesConditions, []string{"I10"}, true},
		"too many conflicts":   {GivesUp, []string{"I1"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := story("stamper", SetupStamper(test.bug))
			s.ExternalAPI = nil
			d := explore(t, s, fault.Contention)
			if diff := cmp.Diff(test.want, d.broken); diff != "" || d.schedules < 4 || slices.Contains(d.kinds, "") {
				t.Errorf("%q: broken by %d schedules of kinds %v (-want +got):\n%s", test.bug, d.schedules, d.kinds, diff)
			}
			usual := fault.AtMost(0)
			if test.alone {
				usual = some()
			}
			if d := exploreWith(t, s, usual); test.alone == (d.broken != nil) {
				t.Errorf("%q: the usual kinds break %v, want nothing: %t", test.bug, d.broken, test.alone)
			}
		})
	}
}

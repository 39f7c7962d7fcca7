package wild

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TestCheck proves that a bug is known by the invariant and the sentence of a finding, and by nothing else in its
// report, and that an exploration that was cut short does not pass.
func TestCheck(t *testing.T) {
	violation := func(id fault.Invariant, message string) fault.Violation {
		return fault.Violation{Invariant: id, Message: message, Detail: "- things a became 2"}
	}
	finding := func(all ...fault.Violation) fault.Finding {
		return fault.Finding{Token: "v1/a/race@1", Text: "things a became 2; a thing is missing", Violations: all}
	}
	became, back := violation(fault.I7, "things a became 2; it is 1"), violation(fault.I7, "things a went back from 2 to 1")
	missing := violation(fault.I1, "a thing is missing")
	known := []Bug{
		{Invariant: fault.I7, Says: "things a became 2", Then: "went back from 2 to 1", Why: "no UID"},
		{Invariant: fault.I1, Says: "thing is missing", Why: "no record"},
	}
	tests := map[string]struct {
		further  []fault.Finding // beside the known ones
		played   int
		unplayed int
		wrong    string
	}{
		"all as known":        {[]fault.Finding{finding(missing, became)}, 10, 0, ""},
		"another invariant":   {[]fault.Finding{finding(violation(fault.I9, "things a became 2"))}, 10, 0, "things a became 2; a"},
		"another sentence":    {[]fault.Finding{finding(violation(fault.I7, "things b became 2"))}, 10, 0, "things a became 2; a"},
		"more that is wrong":  {[]fault.Finding{finding(became, violation(fault.I2, "a leak"))}, 10, 0, "things a became 2; a"},
		"what follows, alone": {[]fault.Finding{finding(back)}, 10, 0, "things a became 2; a"},
		"what follows from others": {
			[]fault.Finding{finding(missing, back)}, 10, 0, "things a became 2; a",
		},
		"too few schedules": {nil, 9, 0, "only 9 schedules"},
		"no schedule":       {nil, 0, 0, "only 0 schedules"},
		"not all schedules": {nil, 10, 3, "3 schedules were not played"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, wrong := check(fault.Report{
				Schedules: map[fault.Kind]int{fault.Crashes: test.played / 2, fault.Races: test.played - test.played/2},
				Unplayed:  test.unplayed,
				Findings:  append([]fault.Finding{finding(became, back), finding(missing)}, test.further...),
			}, 10, known)
			if test.wrong == "" && len(wrong) > 0 || test.wrong != "" && (len(wrong) != 1 || !strings.HasPrefix(wrong[0], test.wrong)) {
				t.Errorf("wrong is %q, want %q", wrong, test.wrong)
			}
		})
	}
	t.Run("a bug is gone", func(t *testing.T) {
		_, wrong := check(fault.Report{Findings: []fault.Finding{finding(became)}}, 0, known)
		if want := `no finding breaks I1 and says "thing is missing" any more: no record`; len(wrong) != 1 || wrong[0] != want {
			t.Errorf("wrong is %q, want %q", wrong, want)
		}
	})
}

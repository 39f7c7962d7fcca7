package componenttest

import (
	"strings"
	"testing"
)

// TestMissedKills: a sweep that kills nobody does not pass.
func TestMissedKills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missed []int
		want   string
	}{
		{nil, ""},
		{[]int{9, 9}, ""},
		{[]int{9, 8, 7}, ""},
		{[]int{9, 8, 6}, "at these, because it made fewer: [6 8 9]"},
	} {
		var m missedKills
		for _, write := range c.missed {
			m.add(write)
		}
		err := m.problem(9, 3)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("missed %v: %v, want %q", c.missed, err, c.want)
		}
	}
}

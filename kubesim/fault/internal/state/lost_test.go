package state

import (
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// TestWithoutLost proves that of a status that was removed nothing may stay away but conditions that are False.
func TestWithoutLost(t *testing.T) {
	const whole = "kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Open\n    status: \"True\"\n  - type: Suspended\n    status: \"False\"\n  replicas: 1\n"
	for name, tc := range map[string]struct {
		got  string
		same bool
	}{
		"a False one is missing":           {"kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Open\n    status: \"True\"\n  replicas: 1\n", true},
		"a True one is missing":            {"kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Suspended\n    status: \"False\"\n  replicas: 1\n", false},
		"a False one is True":              {"kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Open\n    status: \"True\"\n  - type: Suspended\n    status: \"True\"\n  replicas: 1\n", false},
		"a False one and a field":          {"kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Open\n    status: \"True\"\n", false},
		"a False one, and another spec":    {"kind: Shop\nspec:\n  size: 2\nstatus:\n  conditions:\n  - type: Open\n    status: \"True\"\n  replicas: 1\n", false},
		"all of the status":                {"kind: Shop\nspec:\n  size: 1\n", false},
		"the object":                       {history.Gone, false},
		"one that the other does not have": {"kind: Shop\nspec:\n  size: 1\nstatus:\n  conditions:\n  - type: Failed\n    status: \"False\"\n  - type: Open\n    status: \"True\"\n  replicas: 1\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			want := history.State{Objects: map[string]string{"shops a": whole}}
			got := history.State{Objects: map[string]string{"shops a": tc.got}}
			if is := Matches(WithoutLost(want, got, []string{"shops a"}), got); is != tc.same {
				t.Errorf("taken for the same: %t, want %t", is, tc.same)
			}
			if Matches(WithoutLost(want, got, nil), got) {
				t.Error("another object's status was removed, and this one may differ")
			}
		})
	}
}

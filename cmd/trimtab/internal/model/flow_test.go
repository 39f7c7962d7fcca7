package model

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFlows: the states of a flow are those that the documentation explains.
func TestFlows(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why, file, head string
		nature          nature
	}{
		"external":  {"the first column of the table of states; some lines have several", "status.md", "| State | Meaning |", natureExternal},
		"component": {"the first column of the table of states and reasons", "components.md", "| State | Reason |", natureComponent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../../../docs/" + tt.file)
			if err != nil {
				t.Fatal(err)
			}
			_, table, found := strings.Cut(string(text), "\n"+tt.head)
			table, _, _ = strings.Cut(table, "\n\n")
			var want []string
			for _, line := range regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z, ]*) \|`).FindAllStringSubmatch(table, -1) {
				want = append(want, strings.Split(line[1], ", ")...)
			}
			slices.Sort(want)
			got := slices.Sorted(slices.Values(flowOf(tt.nature).States()))
			if diff := cmp.Diff(slices.Compact(want), got); diff != "" || !found {
				t.Errorf("%s (-docs +flow):\n%s", tt.why, diff)
			}
		})
	}
}

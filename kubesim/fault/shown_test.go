package fault

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestCalls proves that -fault.calls writes all calls of the undisturbed run to the log. The test runs itself with
// the flag, because a log can only be read from outside.
func TestCalls(t *testing.T) {
	s := toyLife("")
	s.Races, s.Steps = []Step{}, append(s.Steps, s.Steps...) // more calls than a report shows
	r := Explore(t, s, Only(Crashes), AtMost(1))
	if *callsFlag {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, "-test.run=^TestCalls$", "-test.v", "-fault.calls").Output()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	_, table, found := strings.Cut(string(out), `scenario "toy", all calls:`)
	if !found {
		t.Fatalf("the log has no calls:\n%s", out)
	}
	rows := regexp.MustCompile(`(?m)^ +\d+  \d+:\d\d\.\d{3}  `).FindAllString(table, -1)
	if len(rows) != r.Calls {
		t.Errorf("%d calls were made, and the log has %d:\n%s", r.Calls, len(rows), table)
	}
}

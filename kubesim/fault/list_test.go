package fault

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// listVariable makes the process that has it in its environment one that lists schedules.
const listVariable = "FAULT_TEST_LIST"

// TestList proves that all schedules can be listed without playing them, by tokens that replay them.
func TestList(t *testing.T) {
	if os.Getenv(listVariable) != "" {
		if r := Run(t, toyLife("finalizer first"), Only(Crashes, Faults)); len(r.Schedules) > 0 || len(r.Findings) > 0 {
			t.Errorf("%v were played, which found %v", r.Schedules, r.texts())
		}
		return
	}
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestList$", "-test.v", "-fault.list")
	self.Env = append(os.Environ(), listVariable+"=yes")
	out, err := self.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var listed []string
	for line := range strings.Lines(string(out)) {
		if token := strings.TrimSpace(line); strings.HasPrefix(token, "v1/toy/") {
			listed = append(listed, token)
		}
	}
	r := Explore(t, toyLife("finalizer first"), Only(Crashes, Faults))
	if got, want := len(listed), r.Schedules[Crashes]+r.Schedules[Faults]; got != want || len(r.Findings) == 0 || !slices.Contains(listed, r.Findings[0].Token) {
		t.Errorf("%d schedules were listed, want %d, with those of the findings:\n%s", got, want, out)
	}
	if !strings.Contains(string(out), "with -fault.list, no schedule is played") {
		t.Errorf("the report does not say that nothing was played:\n%s", out)
	}
}

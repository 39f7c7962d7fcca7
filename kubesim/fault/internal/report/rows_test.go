package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
)

// TestUnended proves that of a disturbed run that did not come to its end both are shown, what was disturbed and what comes last.
func TestUnended(t *testing.T) {
	r := run("crash-after")
	for range 100 {
		r.Calls = append(r.Calls, history.Call{Index: len(r.Calls), At: r.Calls[9].At, Pass: 1, Verb: "update", Resource: "queues", Name: "loop", Write: true, Changed: true})
	}
	in := report.Input{Run: r, Violations: []history.Violation{{Invariant: "I13", Call: len(r.Calls) - 1}}, Unended: true}
	text := report.Text(in)
	if !strings.Contains(text, "  >>    4 ") || strings.Count(text, "update queues loop") < 5 {
		t.Errorf("want the disturbance and the last calls:\n%s", text)
	}
}

// TestColumns proves that columns stay where they are when a run goes on for more than ten minutes.
func TestColumns(t *testing.T) {
	r := run("")
	for i := range r.Calls {
		r.Calls[i].At = start.Add(time.Duration(i) * 4 * time.Minute)
	}
	r.Faults = []history.Fault{{Kind: "frozen", Call: history.Nobody, Next: 1, At: "here", Time: start.Add(time.Minute)}}
	text := report.Calls(r)
	for _, line := range []string{
		"     call  time        proc  reconcile", "        1  4:00.000    1     -", "        3  12:00.000   1     default", "       30  120:00.000  2     default",
		"  >>       1:00.000    frozen: here",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("want a line that begins with %q in\n%s", line, text)
		}
	}
}

// TestCauseToEffect proves that the calls between a disturbance and what it broke are shown.
func TestCauseToEffect(t *testing.T) {
	r := run("crash-after")
	text := report.Text(report.Input{Run: r, Violations: []history.Violation{{Invariant: "I3", Call: 16}}})
	_, after, _ := strings.Cut(text, "  >>    4 ")
	between, _, ok := strings.Cut(after, "\n       16 ")
	if !ok || strings.Contains(between, "more call") || !strings.Contains(between, "\n       13 ") {
		t.Errorf("want all calls from the fourth to the 16th:\n%s", text)
	}
}

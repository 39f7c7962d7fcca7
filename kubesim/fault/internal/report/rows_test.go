package report_test

import (
	"strings"
	"testing"

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

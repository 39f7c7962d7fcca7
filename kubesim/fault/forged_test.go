package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// TestForgedTokens proves that a token which names no way to forge a status is refused, and that
// an operator without conditions has none to forge.
func TestForgedTokens(t *testing.T) {
	_, reference, w := prepared(t, toyLife(""))
	p := &plan{scenario: w.explorer.scenario, reference: reference, pruned: map[Rule]int{}}
	if jobs := p.forged(); len(jobs) > 0 {
		t.Errorf("%d ways to forge the status of ConfigMaps, which have none", len(jobs))
	}
	r := w.play(t, job{schedule: schedule{{kind: forged, at: 2, arg: "7"}}, like: reference.run})
	if r.err == nil || !strings.Contains(r.err.Error(), "names none of the 0 ways") {
		t.Errorf("a token of a forgery that there is not gave %v", r.err)
	}
	if slices.ContainsFunc(r.run.Changes, func(c history.Change) bool { return c.By == foreignName }) {
		t.Error("something was written")
	}
}

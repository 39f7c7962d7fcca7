package fault

import (
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// TestForgedTokens proves that a token which names no way to forge a status is refused, and that
// an operator without conditions has none to forge.
func TestForgedTokens(t *testing.T) {
	e, w := prepared(t, toyLife(""))
	if jobs := e.plan.Forging(); len(jobs) > 0 {
		t.Errorf("%d ways to forge the status of ConfigMaps, which have none", len(jobs))
	}
	r := w.Play(t, run.Job{Schedule: schedule.Schedule{{Kind: schedule.Forged, At: 2, Arg: "7"}}, Like: e.reference.Run})
	if r.Err == nil || !strings.Contains(r.Err.Error(), "names none of the 0 ways") {
		t.Errorf("a token of a forgery that there is not gave %v", r.Err)
	}
	if slices.ContainsFunc(r.Run.Changes, func(c history.Change) bool { return c.By == history.Foreigner }) {
		t.Error("something was written")
	}
}

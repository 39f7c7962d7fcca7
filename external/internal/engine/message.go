package engine

import (
	"fmt"
	"strings"

	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
)

// texts gathers the strings of the pass. It sanitizes those from outside the process.
func (p *pass) texts() decide.Texts {
	t := decide.Texts{
		Thing: p.what(), ID: p.id, Named: plain.Text(p.named),
		Error: p.last.text(), CreateError: p.refused, Connect: plain.Error(p.connect), Refusal: plain.Error(p.track.refusal.err), Trouble: plain.Error(p.trouble),
		Vendor: plain.Text(p.seen.Message), Phase: string(p.seen.Phase),
		Changes: p.changes.Acted().String(), InPlace: p.changes.With(change.InPlace).String(),
		Recreate: p.changes.With(change.Recreate).String(), Unsupported: p.changes.With(change.Unsupported).String(),
		Ignored: p.changes.NotEnforced(), Remedy: p.changes.Remedy(), Changing: p.track.changing,
		Waiting: waitingFor(p.waiting), Problems: strings.Join(p.settings.problems, "; "),
		FailedReason: p.track.said.FailedReason, Failed: p.track.said.FailedText,
		GaveUp: "change the object to try again",
	}
	if n := p.run.Retry().Attempt; n > 0 {
		t.GaveUp = fmt.Sprintf("gave up after %d retries, %s", n, t.GaveUp)
	}
	t.Shut = plain.Text(p.shut)
	t.Hangs, t.Unreflected = plain.Error(p.hangs), plain.Error(p.unreflected)
	if p.seen.Reason != "" {
		t.VendorReason = plain.Reason(p.seen.Reason)
	}
	if p.settings.pause != decide.PauseNone {
		t.Paused = decide.PausedText(p.settings.pause, p.settings.until)
	}
	p.ownership(&t)
	return t
}

func waitingFor(deps []loop.Dep) string {
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// what names the resource for users.
func (p *pass) what() string {
	kind := strings.ToLower(p.e.kind)
	if p.id == "" {
		return "the " + kind
	}
	return fmt.Sprintf("%s %q", kind, plain.Text(p.id))
}

package external

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
)

// texts gathers the words of the pass. What comes from outside goes through the door here.
func (p *pass[T, C, O]) texts() decide.Texts {
	t := decide.Texts{
		Thing: p.what(), ID: p.id, Named: plain.Text(p.named),
		Error: p.last.text, CreateError: p.refused.text, Connect: plain.Error(p.connect), Refusal: plain.Error(p.track.refusal.err), Trouble: plain.Error(p.trouble),
		Vendor: plain.Text(p.seen.Message), Phase: string(p.seen.Phase),
		Changes: p.changes.acted().String(), InPlace: p.changes.With(InPlace).String(),
		Recreate: p.changes.With(Recreate).String(), Unsupported: p.changes.With(Unsupported).String(),
		Ignored: notEnforced(p.changes), Remedy: remedy(p.changes), Changing: p.track.changing,
		Waiting: waitingFor(p.waiting), Problems: strings.Join(p.settings.problems, "; "),
		FailedReason: p.track.said.FailedReason, Failed: p.track.said.FailedText,
		GaveUp: "change the object to try again",
	}
	if n := p.loop.Retry().Attempt; n > 0 {
		t.GaveUp = fmt.Sprintf("gave up after %d retries, %s", n, t.GaveUp)
	}
	t.Shut = plain.Text(p.shut)
	t.Hangs, t.Unreflected = plain.Error(p.hangs), plain.Error(p.unreflected)
	if p.seen.Reason != "" {
		t.VendorReason = plain.Reason(p.seen.Reason)
	}
	if p.settings.pause != decide.PauseNone {
		t.Paused = p.settings.paused()
	}
	p.ownership(&t)
	return t
}

// acted are the changes to act on.
func (c Changes) acted() Changes {
	var out Changes
	for _, x := range c {
		if x.Effect != Ignored {
			out = append(out, x)
		}
	}
	return out
}

// repairable tells whether a call can make one of the differences go away.
func (c Changes) repairable() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return x.Effect == InPlace || x.Effect == Recreate })
}

// visible tells whether people can see what differs.
func (c Changes) visible() bool {
	return slices.ContainsFunc(c, func(x Change) bool { return !x.hidden() })
}

// notEnforced lists the differences that are not acted on.
func notEnforced(changes Changes) string {
	var parts []string
	for _, c := range changes.With(Ignored) {
		have, want := c.shown()
		parts = append(parts, fmt.Sprintf("%s is %s, wanted %s", c.Path, have, want))
	}
	return strings.Join(parts, ", ")
}

// remedy is the way out of changes that are not supported.
func remedy(changes Changes) string {
	for _, c := range changes.With(Unsupported) {
		if c.Remedy != "" {
			return plain.Text(c.Remedy)
		}
	}
	return "delete the object and create it anew"
}

func waitingFor(deps []loop.Dep) string {
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// paused says by what changes are paused, and until when.
func (s *settings) paused() string {
	text := "changes are paused by annotation " + api.AnnotationPaused
	switch {
	case !s.until.IsZero():
		return text + " until " + s.until.UTC().Format(time.RFC3339)
	case s.pause == decide.PauseAll:
		return text + ", deletion too; remove it to go on"
	}
	return text + "; remove it to go on"
}

// what names the thing for people.
func (p *pass[T, C, O]) what() string {
	kind := strings.ToLower(p.e.kind)
	if p.id == "" {
		return "the " + kind
	}
	return fmt.Sprintf("%s %q", kind, plain.Text(p.id))
}

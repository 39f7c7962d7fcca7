package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
)

// texts gathers the strings of the pass. It sanitizes those from outside the process.
func (p *reporter) texts() decide.Texts {
	t := decide.Texts{
		Resource: p.what(), ID: p.id, Named: plain.Text(p.named),
		Error: p.last.text(), CreateError: p.refused, Connect: plain.Error(p.connect), Refusal: plain.Error(p.track.refusal.err), Trouble: plain.Error(p.trouble),
		External: plain.Text(p.seen.Message), Phase: string(p.seen.Phase),
		Changes: p.changes.Acted().String(), InPlace: p.changes.With(change.InPlace).String(),
		Recreate: p.changes.With(change.Recreate).String(), Unsupported: p.changes.With(change.Unsupported).String(),
		Ignored: p.changes.NotEnforced(), Remedy: p.changes.Remedy(), Changing: p.track.changing,
		Waiting: waitingFor(p.waiting), Problems: strings.Join(p.settings.problems, "; "),
		FailedReason: p.track.lastReport.FailedReason, Failed: p.track.lastReport.FailedText,
		GaveUp: "change the object to try again", PublishError: p.undone, Lost: p.missingOutput(), Found: foundIDs(p.found),
	}
	if n := p.run.Retry().Attempt; n > 0 {
		t.GaveUp = fmt.Sprintf("gave up after %d retries, %s", n, t.GaveUp)
	}
	t.Shut = plain.Text(p.shut)
	t.Hangs, t.Unreflected = plain.Error(p.hangs), plain.Error(p.unreflected)
	t.FinishError = p.undone
	if p.completion != nil {
		t.Uncompleted = plain.Error(p.completion.unknown)
	}
	if p.seen.Reason != "" {
		t.ExternalReason = plain.Reason(p.seen.Reason)
	}
	if p.settings.pause != decide.PauseNone {
		t.Paused = decide.PausedText(p.settings.pause, p.settings.until)
	}
	p.operationTexts(&t)
	p.ownership(&t)
	return t
}

// foundIDs are the ids of resources, as [decide.Texts] has them.
func foundIDs(found []Found) string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = fmt.Sprintf("%q", plain.Text(f.ID))
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return ": " + strings.Join(ids, " and ")
}

func waitingFor(deps []loop.Dep) string {
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = d.String()
	}
	return strings.Join(parts, ", ")
}

// ownership gathers the texts about who owns a resource, and how to get it. They name only ways
// that this object's namespace really allows.
func (p *reporter) ownership(t *decide.Texts) {
	found := p.seen.Mark
	t.Holder, t.Grant = p.holder, p.grant()
	t.MadeAt, t.Here = plain.Text(p.record.Endpoint), plain.Text(p.place.Endpoint)
	if p.facts.Seen.Owner != decide.OwnerUs || p.facts.Record.Marker == record.MarkerNone { // otherwise it is certainly ours
		t.AdoptAlways = p.adoptBy(api.AdoptionAlways)
	}
	if p.facts.Seen.Owner != decide.OwnerUs {
		t.Owner, t.OwnerUID, t.OwnerCluster = ownerIn(found), plain.Text(found[record.MarkUID]), plain.Text(found[record.MarkCluster])
		t.AdoptFrom = p.adoptBy(api.AdoptionFrom + t.OwnerUID)
	}
	t.Adopted = p.record.Adopted
	if p.created && len(found) == 0 {
		t.Unmarked = p.e.driver.Type
	}
}

// ownerIn names the object whose mark was found.
func ownerIn(found map[string]string) string {
	name := found[record.MarkName]
	if ns := found[record.MarkNamespace]; ns != "" {
		name = ns + "/" + name
	}
	return plain.Text(found[record.MarkKind] + " " + name)
}

// adoptBy says how to adopt a resource with a value of the adoption annotation.
func (p *reporter) adoptBy(value string) string {
	if p.settings.limits.adoption < decide.AdoptAlways {
		return fmt.Sprintf("whoever runs the operator can allow annotation %s=%s, which adopts it, with %s",
			api.AnnotationAdoption, value, decide.Flag("adoption-limit", p.settings.limits.namespace, api.AdoptionAlways))
	}
	return decide.AdoptBy(value)
}

// grant describes who withholds a permission.
func (p *reporter) grant() decide.Grant {
	policy := p.settings.policy
	return decide.Grant{
		Author: granted(p.e.options.Limits.Access), Operator: granted(p.run.Terms().Access.In(p.settings.limits.namespace)),
		Annotation: letters(policy.Create, policy.Update, policy.Delete), Namespace: p.settings.limits.namespace,
	}
}

// granted returns the letters of a limit. An empty limit grants all.
func granted(limit string) string {
	if limit == "" {
		return "cud"
	}
	l, _ := api.AccessLetters(limit)
	return l
}

// letters is the inverse of lettersOf.
func letters(create, update, remove bool) string {
	c, u, d := "c", "u", "d"
	if !create {
		c = ""
	}
	if !update {
		u = ""
	}
	if !remove {
		d = ""
	}
	return c + u + d
}

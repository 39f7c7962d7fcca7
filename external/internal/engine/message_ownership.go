package engine

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// ownership gathers the texts about who owns a resource, and how to get it. They name only ways
// that this object's namespace really allows.
func (p *pass) ownership(t *decide.Texts) {
	found := p.seen.Mark
	t.Holder, t.Grant = p.holder, p.grant()
	t.MadeAt, t.Here = plain.Text(p.record.Endpoint), plain.Text(p.here.Endpoint)
	t.AdoptAlways = p.adoptBy(api.AdoptionAlways)
	if p.facts.Seen.Owner != decide.OwnerUs {
		t.Owner, t.OwnerUID, t.OwnerCluster = ownerIn(found), plain.Text(found[record.MarkUID]), plain.Text(found[record.MarkCluster])
		t.AdoptFrom = p.adoptBy(api.AdoptionFrom + t.OwnerUID)
	}
	t.Adopted = p.record.Adopted
	if p.did.created && len(found) == 0 {
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
func (p *pass) adoptBy(value string) string {
	if p.settings.limits.adoption < decide.AdoptAlways {
		return fmt.Sprintf("whoever runs the operator can allow annotation %s=%s, which adopts it, with --%s",
			api.AnnotationAdoption, value, p.settings.limits.flagged("adoption-limit", api.AdoptionAlways))
	}
	return fmt.Sprintf("set annotation %s to %q to adopt it", api.AnnotationAdoption, value)
}

// grant says how to grant the missing permission.
func (p *pass) grant() string {
	if l := p.settings.limits; !l.create || !l.update || !l.remove {
		return fmt.Sprintf("; allow it with annotation %s, within what the operator's --access-limit allows here", api.AnnotationAccess)
	}
	return "; allow it with annotation " + api.AnnotationAccess
}

package external

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/api"
)

// ownershipMessage is about whose a thing is, and how to get it.
func (p *pass[T, C, O]) ownershipMessage(r Reason) string {
	switch r {
	case ReasonContested:
		return fmt.Sprintf("this object and %s each have a record which says that %s is theirs, and nothing proves either; "+
			"neither changes or deletes it until one of them is deleted with annotation %s=orphan", p.holder, p.what(), api.AnnotationDeletion)
	case ReasonEndpointChanged:
		return fmt.Sprintf("%s was made at %s, and the operator talks to %s; let it talk to the former again, or set annotation %s to %q to leave the thing there",
			p.what(), p.record.Endpoint, p.here.Endpoint, api.AnnotationEndpoint, p.here.Endpoint)
	case ReasonAdopting:
		return "taking over " + p.what() + ": it gets the mark of this object"
	default:
	}
	if p.facts.Seen.Rival != RivalNone {
		return p.heldBy(p.holder)
	}
	return p.notOurs()
}

func (p *pass[T, C, O]) heldBy(owner string) string {
	return fmt.Sprintf("%s belongs to %s; choose another name, or delete that object with annotation %s=orphan first",
		p.what(), owner, api.AnnotationDeletion)
}

// notOurs says whose the thing is by its mark. The way out is one that this object's namespace
// really has.
func (p *pass[T, C, O]) notOurs() string {
	found := p.seen.Mark
	owner := found[MarkKind] + " " + found[MarkName]
	if ns := found[MarkNamespace]; ns != "" {
		owner = found[MarkKind] + " " + ns + "/" + found[MarkName]
	}
	from := p.adoptBy(api.AdoptionFrom + found[MarkUID])
	switch p.facts.Seen.Owner {
	case OwnerOther:
		return p.heldBy(owner) + "; if it is gone for good, " + from
	case OwnerForeign:
		return fmt.Sprintf("%s belongs to %s of another cluster (%s), where it may live; choose another name, or, if it is gone for good, %s",
			p.what(), owner, orUnnamed(found[MarkCluster]), from)
	case OwnerNamesake, OwnerRestored, OwnerStated:
		return fmt.Sprintf("%s belongs to an earlier %s with UID %s; %s", p.what(), owner, found[MarkUID], p.adoptBy(api.AdoptionAlways))
	case OwnerNobody, OwnerUs, OwnerRecorded:
	}
	if p.did.created && len(found) == 0 {
		return fmt.Sprintf("%s was created by this very pass and bears no mark; %T must put CreateInput.Mark on the thing and return it in "+
			"Observation.Mark, or say Options.Unmarked; until then the thing stays when the object goes", p.what(), p.e.driver)
	}
	if p.record.Adopted != "" {
		return fmt.Sprintf("%s was taken over, which the adoption policy no longer allows; %s", p.what(), p.adoptBy(api.AdoptionAlways))
	}
	return fmt.Sprintf("%s exists and is not ours; %s", p.what(), p.adoptBy(api.AdoptionAlways))
}

func orUnnamed(cluster string) string {
	if cluster == "" {
		return "its mark does not say which"
	}
	return cluster
}

// adoptBy is how to take a thing over by a value of the adoption annotation.
func (p *pass[T, C, O]) adoptBy(value string) string {
	if p.settings.limits.adoption < AdoptAlways {
		return fmt.Sprintf("who runs the operator can allow annotation %s=%s, which takes it over, by --%s",
			api.AnnotationAdoption, value, p.settings.limits.flagged("adoption-limit", api.AdoptionAlways))
	}
	return fmt.Sprintf("set annotation %s to %q to take it over", api.AnnotationAdoption, value)
}

// grant is how to allow what the permissions do not.
func (p *pass[T, C, O]) grant() string {
	if l := p.settings.limits; !l.create || !l.update || !l.remove {
		return fmt.Sprintf("; allow it by annotation %s, within what the operator's --access-limit allows here", api.AnnotationAccess)
	}
	return "; allow it by annotation " + api.AnnotationAccess
}

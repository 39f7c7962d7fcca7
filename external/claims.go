package external

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// IndexKeys are the thing that obj stands for, as far as obj tells, by the name that it was to
// have and by the identity that its API assigned, and obj itself.
func (e *engine[T, C, O]) IndexKeys(obj T) []string {
	keys := []string{objectClaim(string(obj.GetUID()))}
	if id := e.standsFor(obj); id != "" {
		keys = append(keys, thingClaim(id))
	}
	if given := ownRecord(obj).Given; given != "" {
		keys = append(keys, thingClaim(given))
	}
	return keys
}

func thingClaim(id string) string   { return "thing/" + id }
func objectClaim(uid string) string { return "object/" + uid }

// standsFor is the identity of the thing that obj has, or wants.
func (e *engine[T, C, O]) standsFor(obj T) string {
	if r := ownRecord(obj); r.ID != "" {
		return r.ID
	}
	name, err := e.nameOf(context.Background(), obj) //nolint:forbidigo // the cache's index has none
	if err != nil {
		return ""
	}
	return name
}

// ownRecord is what obj carries, if it was written for obj.
func ownRecord(obj Object) record {
	r, err := parseRecord(obj.GetAnnotations()[api.AnnotationExternal])
	if err != nil || r.UID != string(obj.GetUID()) {
		return record{}
	}
	return r
}

// standingOf is what obj's claim to the thing that it stands for rests on, as far as the cache
// tells.
func (p *pass[T, C, O]) standingOf(obj T, found Mark) standing {
	r := ownRecord(obj)
	s := standing{
		uid: string(obj.GetUID()), since: obj.GetCreationTimestamp().Time, asked: r.asked(), place: r.place,
		had: r.had(), ends: !obj.GetDeletionTimestamp().IsZero(),
	}
	if !r.exists() { // it will be worked on here
		s.place = p.here
	}
	asks := readSettings(obj.GetAnnotations(), time.Now(), p.e.limits(p.loop.Terms(), obj.GetNamespace()))
	s.leaves = s.ends && asks.policy.Orphan
	if p.e.options.Unmarked || p.missing() { // also what the policy no longer lets it have is not for others to take
		s.holds = r.exists() && !r.Refused && (r.ID == p.id || r.Given == p.id)
		return s
	}
	who := claimant{
		mark: p.markOf(obj, r.Incarnation), record: r, late: p.e.options.MarkLater, untried: r.Refused,
		adoption: asks.policy.Adoption, from: asks.from,
	}
	s.holds = who.ownerOf(found) == OwnerRecorded
	return s
}

// contest looks for another living object that has a better, or as good, claim to what is
// there, or to its name if nothing is: one whose mark the thing bears, or that stands for the
// same thing. It asks the cache alone.
func (p *pass[T, C, O]) contest(ctx context.Context) error {
	p.holder = ""
	if uid := p.seen.Mark[MarkUID]; uid != "" && uid != string(p.obj.GetUID()) {
		living, err := p.loop.Sharing(ctx, objectClaim(uid))
		if err != nil {
			return err
		}
		for _, o := range living {
			p.facts.Seen.Rival, p.holder = RivalHolds, p.objectName(o)
			return nil
		}
	}
	others, err := p.loop.Sharing(ctx, thingClaim(p.id))
	if err != nil {
		return err
	}
	ours := p.standingOf(p.obj, p.seen.Mark)
	ours.place, ours.holds = p.here, ours.holds && p.missing() && !p.anew || p.facts.Seen.Owner == OwnerRecorded
	for _, o := range others {
		if o.GetUID() == p.obj.GetUID() {
			continue
		}
		theirs := p.standingOf(o, p.seen.Mark)
		if r := rivalry(ours, theirs, p.missing() && !p.e.options.Unmarked); r > p.facts.Seen.Rival {
			p.facts.Seen.Rival, p.holder = r, p.objectName(o)
		}
	}
	return nil
}

// missing: the look of this pass showed nothing.
func (p *pass[T, C, O]) missing() bool { return p.seen.Phase == PhaseMissing }

// objectName names an object for people.
func (p *pass[T, C, O]) objectName(o T) string {
	return p.e.kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")
}

package engine

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// IndexKeys returns the keys under which obj is found: the resource that it claims, by its
// intended name and by the identity that the API assigned, as far as obj shows, and obj itself.
func (e *Engine) IndexKeys(obj Object) []string {
	keys, r := []string{objectClaim(string(obj.GetUID()))}, e.indexed(obj)
	if id := e.resourceID(obj, r); id != "" && !e.options.AssignedIDs {
		keys = append(keys, resourceClaim(id))
	}
	if r.Given != "" {
		keys = append(keys, resourceClaim(r.Given))
	}
	return keys
}

// indexed is ownRecord with a cache: each event asks for the old and for the new object, most of which have the same record.
func (e *Engine) indexed(obj Object) record.Record {
	type key struct{ uid, value string }
	k := key{string(obj.GetUID()), obj.GetAnnotations()[api.AnnotationExternal]}
	if len(k.value) > record.Longest {
		return record.Record{}
	}
	if known, ok := e.records.Get(k); ok {
		r, _ := known.(record.Record)
		return r
	}
	r := ownRecord(obj)
	e.records.Add(k, r)
	return r
}

// indexedRecords is the size of the cache: many times the number of objects that are reconciled at a time. It takes about 1 MiB.
const indexedRecords = 1000

func resourceClaim(id string) string { return "resource/" + id }
func objectClaim(uid string) string  { return "object/" + uid }

// resourceID returns the identity of the resource that obj, whose record is r, has or wants.
func (e *Engine) resourceID(obj Object, r record.Record) string {
	if r.ID != "" {
		return r.ID
	}
	name, err := e.nameOf(obj)
	if err != nil {
		return ""
	}
	return name
}

// ownRecord returns the record on obj, if it was written for obj.
func ownRecord(obj Object) record.Record {
	r, err := record.Parse(obj.GetAnnotations()[api.AnnotationExternal])
	if err != nil || r.UID != string(obj.GetUID()) {
		return record.Record{}
	}
	return r
}

// standingOf returns what obj's claim to its resource rests on, as far as the cache shows.
func (p *resource) standingOf(obj Object, found map[string]string) decide.Standing {
	r := ownRecord(obj)
	s := decide.Standing{
		UID: string(obj.GetUID()), Since: obj.GetCreationTimestamp().Time, Claimed: r.Claimed(), Place: r.Place,
		Had: r.Had(), Deleting: !obj.GetDeletionTimestamp().IsZero(),
	}
	if !r.Exists() { // it will be reconciled here
		s.Place = p.place
	}
	asks := readSettings(obj.GetAnnotations(), time.Now(), p.e.limits(p.run.Terms(), obj.GetNamespace()))
	s.Orphans = s.Deleting && asks.policy.Orphan
	if p.e.options.Unmarked || p.missing() { // a resource that the policy no longer grants obj must not go to others either
		s.Holds = r.Exists() && !r.Refused && (r.ID == p.id || r.Given == p.id)
		return s
	}
	who := decide.Claimant{
		Mark: p.markOf(obj, r.Incarnation), Record: r, Late: p.e.options.MarkLater, Untried: r.Refused,
		Adoption: asks.policy.Adoption, From: asks.from,
	}
	s.Holds = who.OwnerOf(found) == decide.OwnerRecorded
	return s
}

// contest looks for another living object with a better or an equal claim to the resource, or to
// its name if there is none: one whose mark the resource bears, or that claims the same resource.
// It reads only the cache.
func (p *resource) contest(ctx context.Context) error {
	p.holder = ""
	if uid := p.seen.Mark[record.MarkUID]; uid != "" && uid != string(p.obj.GetUID()) {
		living, err := p.run.Sharing(ctx, objectClaim(uid))
		if err != nil {
			return err
		}
		for _, o := range living {
			p.facts.Seen.Rival, p.holder = decide.RivalHolds, p.objectName(o)
			return nil
		}
	}
	others, err := p.run.Sharing(ctx, resourceClaim(p.id))
	if err != nil {
		return err
	}
	ours := p.standingOf(p.obj, p.seen.Mark)
	ours.Place, ours.Holds = p.place, ours.Holds && p.missing() && !p.startsOver || p.facts.Seen.Owner == decide.OwnerRecorded
	for _, o := range others {
		if o.GetUID() == p.obj.GetUID() {
			continue
		}
		theirs := p.standingOf(o, p.seen.Mark)
		if r := decide.Rivalry(ours, theirs, p.missing() && !p.e.options.Unmarked); r > p.facts.Seen.Rival {
			p.facts.Seen.Rival, p.holder = r, p.objectName(o)
		}
	}
	return nil
}

// missing reports whether this pass's observation found no resource.
func (p *resource) missing() bool { return p.seen.Phase == decide.PhaseMissing }

// objectName names an object for users.
func (p *resource) objectName(o Object) string {
	return p.e.kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")
}

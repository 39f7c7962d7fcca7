package engine

import (
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// commonsPass is one pass over an object by its realm's operator: what the engine does, with the
// same functions, with calls that succeed and processes that may die between any two of them.
type commonsPass struct {
	w              *commons
	h              *holder
	t              *track
	here           record.Place
	rec, inherited record.Record
	anew           bool
	id             string
	f              decide.Facts
	seen           *deed
}

func (w *commons) visit(h *holder) {
	if h.gone {
		return
	}
	p := &commonsPass{w: w, h: h, t: h.c.tracks[h.uid]}
	if p.t == nil {
		p.t = &track{fresh: true}
		h.c.tracks[h.uid] = p.t
	}
	p.here = record.Place{Cluster: h.c.id, Installation: "op", Endpoint: h.c.endpoint, Object: h.key()}
	if !h.finalizer {
		if h.deleting {
			w.remove(h)
			return
		}
		p.prepare()
	}
	p.read()
	if !p.t.read(p.rec, w.clock(), 0) {
		p.t.meet(p.rec, w.clock(), 0)
	}
	for range 16 {
		w.steps++
		if w.chance(3) {
			h.c.tracks = map[string]*track{} // the process dies
			return
		}
		d := decide.Next(p.facts())
		h.last = d
		w.log("%s: %s uid %s: %s %s %s, seen %+v, creation %d, record %s", h.c.id, h.key(), h.uid, d.Row, d.Action, d.Reason, p.f.Seen, p.f.Creation, h.rec)
		if !p.act(d) || w.broken != "" {
			return
		}
	}
	w.fail(h, "has a pass that does not end")
}

func (p *commonsPass) prepare() {
	p.h.finalizer = true
	if p.w.k.unmarked {
		return
	}
	if there, err := record.Parse(p.h.rec); err != nil || there.Stays(p.h.uid, p.here) || p.w.m.trustsCopies && there.Exists() {
		return
	}
	r := p.write(p.h.spec, 1, "", time.Time{})
	p.t.prepared = r.Create
}

// write makes a record durable.
func (p *commonsPass) write(id string, incarnation int64, adopted string, done time.Time) record.Record {
	w := p.w
	here := p.here
	if w.m.noEndpoints {
		here.Endpoint = ""
	}
	r, value, err := record.Settle((record.Record{
		ID: id, Incarnation: incarnation, UID: p.h.uid, Adopted: adopted, Done: done, Place: here,
		Create: record.Marker{At: w.clock().Add(time.Duration(len(w.next())) + time.Duration(w.serial)), By: strconv.Itoa(p.h.c.process)},
	}).Follows(p.rec))
	if err != nil {
		w.fail(p.h, err.Error())
	}
	p.h.rec = value
	return r
}

func (p *commonsPass) read() {
	r, err := record.Parse(p.h.rec)
	if err != nil {
		p.w.fail(p.h, err.Error())
	}
	p.rec, p.inherited = r, record.Record{}
	if r.Exists() && r.UID != p.h.uid {
		if p.rec = (record.Record{}); r.Stays("", p.here) || p.w.m.trustsCopies {
			p.inherited = r
		}
	}
	p.identify()
}

func (p *commonsPass) identify() {
	p.id = p.h.spec
	if p.inherited.ID != "" {
		p.id = p.inherited.ID
	}
	if p.rec.ID != "" {
		p.id = p.rec.ID
	}
	if p.rec.Given != "" {
		p.id = p.rec.Given
	}
}

func (p *commonsPass) facts() decide.Facts {
	f, k := &p.f, p.w.k
	f.Deleting, f.Policy = p.h.deleting, p.w.settingsOf(p.h).policy
	f.CanMark, f.CanUnmark = k.marker && !p.w.m.noMarks, !k.unmarked
	p.t.facts(f, p.w.clock())
	f.Fresh = true
	f.Record = decide.RecordFacts{Incarnation: p.rec.Incarnation, Marker: p.rec.Progress(), KnownID: true}
	if k.unmarked && f.Deleting && (!p.rec.Exists() || p.rec.Refused) {
		f.Record.KnownID = false
	}
	if p.rec.Given != "" {
		f.Record.Trouble = decide.TroubleGiven
		return *f
	}
	pinned := p.rec.Endpoint
	p.anew = pinned != "" && pinned != p.here.Endpoint && p.h.annotations.endpoint == p.here.Endpoint
	switch {
	case p.anew:
		f.Creation, f.DeleteAccepted, f.Record.KnownID, f.Record.Marker = decide.CreationNone, false, !f.Deleting, record.MarkerNone
		if p.id != p.h.spec {
			p.id, f.Seen = p.h.spec, decide.Seen{}
		}
	case pinned != "" && pinned != p.here.Endpoint:
		f.Record.Trouble = decide.TroubleEndpoint
	case p.rec.Exists() && p.rec.ID != p.h.spec: // like a new name in the spec
		f.Record.Trouble = decide.TroubleRenamed
		if f.Creation == decide.CreationNone {
			f.Record.Trouble, f.Record.Marker = decide.TroubleNone, record.MarkerNone
			f.Record.Incarnation--
			if p.id != p.h.spec {
				p.id, f.Seen = p.h.spec, decide.Seen{}
			}
		}
	}
	return *f
}

func (p *commonsPass) act(d decide.Decision) bool {
	w, h := p.w, p.h
	t := w.things[p.here.Endpoint][p.id]
	switch d.Action {
	case decide.ActionObserve:
		p.observe(t)
	case decide.ActionWriteMarker:
		p.leave()
		p.rec, p.inherited = p.write(h.spec, d.Incarnation, "", time.Time{}), record.Record{}
		p.identify()
		p.t.wroteMarker(p.rec.Create, p.rec.Incarnation)
		p.f.Seen = decide.Seen{}
	case decide.ActionAdopt:
		p.adopt(t)
	case decide.ActionCreate:
		p.create(t)
	case decide.ActionUpdate:
		p.touch(t, "updates")
		if t != nil {
			t.value = h.want
		}
		p.changed(decide.ActionUpdate)
	case decide.ActionMark:
		p.touch(t, "marks")
		if t != nil {
			t.mark, t.owner = p.mark(), h
		}
		p.changed(decide.ActionMark)
	case decide.ActionDelete:
		p.touch(t, "deletes")
		if t != nil && !t.made && t.mark == nil && !w.k.unmarked && h.ns != "t1" && p.rec.Given != "" {
			w.fail(h, "deletes what nothing proves to be his")
		}
		delete(w.things[p.here.Endpoint], p.id)
		p.t.deleteAnswered(false)
		p.changed(decide.ActionDelete)
	case decide.ActionUnmark:
		p.touch(t, "unmarks")
		if t != nil {
			t.mark, t.owner = nil, nil
		}
		p.changed(decide.ActionUnmark)
	case decide.ActionRemoveFinalizer:
		p.release()
		return false
	default:
		return false
	}
	return true
}

func (p *commonsPass) changed(a decide.Action) {
	p.f.Seen, p.f.Last = decide.Seen{}, decide.Answer{Of: a}
	switch a {
	case decide.ActionUpdate:
		p.f.Did.Update = true
	case decide.ActionDelete:
		p.f.Did.Delete = true
	case decide.ActionMark:
		p.f.Did.Mark = true
	case decide.ActionUnmark:
		p.f.Did.Unmark = true
	default:
	}
}

func (p *commonsPass) mark() map[string]string { return p.w.markOf(p.h) }

// markIn is the mark that labels hold.
func markIn(labels map[string]string) record.Mark {
	incarnation, _ := strconv.ParseInt(labels[record.MarkIncarnation], 10, 64)
	return record.Mark{
		UID: labels[record.MarkUID], Kind: labels[record.MarkKind], Namespace: labels[record.MarkNamespace], Name: labels[record.MarkName],
		Incarnation: incarnation, Cluster: labels[record.MarkCluster],
	}
}

func (w *commons) markOf(h *holder) map[string]string {
	m := map[string]string{record.MarkUID: h.uid, record.MarkKind: "Thing", record.MarkNamespace: h.ns, record.MarkName: h.name, record.MarkCluster: h.c.id}
	if w.m.blindToClusters {
		delete(m, record.MarkCluster)
	}
	return m
}

func (w *commons) claimant(h *holder, r, inherited record.Record, untried bool) decide.Claimant {
	s := w.settingsOf(h)
	c := decide.Claimant{
		Mark: markIn(w.markOf(h)), Record: r, Inherited: inherited, Unmarked: w.k.unmarked, Untried: untried,
		Adoption: s.policy.Adoption, From: s.from,
	}
	c.Late = w.m.trustsGiven && r.Given != ""
	if w.m.trustsAdopted {
		c.Adoption = decide.AdoptAlways
		if r.UID == h.uid && r.Adopted != "" {
			c.From = r.Adopted
		}
	}
	return c
}

// observe observes the resource and who else claims it.
func (p *commonsPass) observe(t *deed) {
	p.seen, p.f.Seen, p.f.Differs, p.f.Last = t, decide.Seen{Observed: true, Phase: decide.PhaseMissing}, decide.Differs{}, decide.Answer{Of: decide.ActionObserve}
	var found map[string]string
	if t == nil {
		p.t.sawNothing()
	} else {
		found = t.mark
		r := p.rec
		if p.anew {
			r = record.Record{}
		}
		p.f.Seen.Phase = decide.PhaseAvailable
		p.f.Seen.Owner = p.w.claimant(p.h, r, p.inherited, p.f.Creation == decide.CreationNone).OwnerOf(found)
		p.f.Differs.InPlace = t.value != p.h.want
	}
	if p.f.Seen.Owner != decide.OwnerUs && (!p.f.Deleting || t != nil) && !p.w.m.noClaims {
		p.contest(found)
	}
	if t == nil {
		return
	}
	if p.f.Seen.Ours() {
		p.t.saw(1, decide.SourceRead)
	} else {
		p.t.sawNothing()
	}
}

func (p *commonsPass) contest(found map[string]string) {
	ours := p.standing(p.h, found)
	ours.Place, ours.Holds = p.here, ours.Holds && p.seen == nil && !p.anew || p.f.Seen.Owner == decide.OwnerRecorded
	for _, o := range p.h.c.objects {
		if o == p.h {
			continue
		}
		if o.uid == found[record.MarkUID] {
			p.f.Seen.Rival = decide.RivalHolds
			return
		}
		r, _ := record.Parse(o.rec)
		if r.UID != o.uid {
			r = record.Record{}
		}
		if r.ID == p.id || r.ID == "" && o.spec == p.id || r.Given == p.id {
			p.f.Seen.Rival = max(p.f.Seen.Rival, decide.Rivalry(ours, p.standing(o, found), p.seen == nil && !p.w.k.unmarked))
		}
	}
}

func (p *commonsPass) standing(o *holder, found map[string]string) decide.Standing {
	r, _ := record.Parse(o.rec)
	if r.UID != o.uid {
		r = record.Record{}
	}
	s := decide.Standing{UID: o.uid, Since: o.created, Claimed: r.Claimed(), Had: r.Had(), Place: r.Place, Deleting: o.deleting, Orphans: o.deleting && o.annotations.deletion == "orphan"}
	if !r.Exists() {
		s.Place = p.here
	}
	s.Holds = r.Exists() && !r.Refused && (r.ID == p.id || r.Given == p.id)
	switch {
	case p.seen == nil && p.w.m.wishesFirst:
		s.Holds = false
	case p.seen != nil && !p.w.k.unmarked:
		s.Holds = p.w.claimant(o, r, record.Record{}, false).OwnerOf(found) == decide.OwnerRecorded
	}
	return s
}

// touch checks that nobody changes a resource of another living object. If two objects that are
// being deleted both claim a resource and nothing shows who owns it, one of them deletes it.
func (p *commonsPass) touch(t *deed, what string) {
	if what == "deletes" && t != nil && t.owner != nil && t.owner.deleting && p.h.deleting && t.owner.annotations.deletion != "orphan" {
		return
	}
	if t != nil && t.owner != nil && t.owner != p.h && !t.owner.gone && !p.stated(t) {
		p.w.fail(p.h, what+" what "+t.owner.key()+" ("+t.owner.uid+" in "+t.owner.c.id+") has")
	}
}

// stated reports whether the owner of the resource is in another cluster and an authorised user
// said to adopt it from there.
func (p *commonsPass) stated(t *deed) bool {
	return t.owner.c != p.h.c && p.h.ns == "t1" && p.h.annotations.adoption == "from:"+t.mark[record.MarkUID]
}

func (p *commonsPass) adopt(t *deed) {
	w := p.w
	if p.rec.Given != "" {
		p.sawGiven()
		return
	}
	p.touch(t, "takes over")
	if !t.made && p.h.ns != "t1" && t.mark == nil {
		w.fail(p.h, "takes what nothing proves to be his")
	}
	p.leave()
	adopted := ""
	if p.f.Seen.Owner != decide.OwnerUs {
		adopted = record.AdoptedFrom(t.mark)
	}
	p.rec, p.inherited = p.write(p.id, max(1, p.rec.Incarnation), adopted, w.clock()), record.Record{}
	p.t.adopted(p.rec, w.clock())
	if !p.f.CanMark || p.f.Seen.Owner == decide.OwnerUs {
		t.owner = p.h // otherwise it is when it is marked
	}
	p.f.Seen = decide.Seen{}
}

// sawGiven notes that an observation has shown the resource by the id in the record.
func (p *commonsPass) sawGiven() {
	r := p.rec
	r.Done = p.w.clock()
	r, value, err := record.Settle(r)
	if err != nil {
		p.w.fail(p.h, err.Error())
	}
	p.rec, p.h.rec, p.f.Seen = r, value, decide.Seen{}
}

// leave gives up what the object had if it starts over at another endpoint.
func (p *commonsPass) leave() {
	if !p.anew {
		return
	}
	for endpoint, at := range p.w.things {
		for _, t := range at {
			if endpoint != p.here.Endpoint && t.owner == p.h {
				t.owner = nil
			}
		}
	}
}

func (p *commonsPass) create(t *deed) {
	p.f.Did.Create = true
	p.f.Seen = decide.Seen{}
	if t != nil {
		p.w.fail(p.h, "creates what is there")
		return
	}
	p.w.remade(p)
	made := &deed{id: p.id, value: p.h.want, owner: p.h, made: true}
	if !p.w.k.unmarked {
		made.mark = p.mark()
	}
	p.w.things[p.here.Endpoint][p.id] = made
	p.t.createAnswered(false, decide.ClassUnknown, p.w.clock())
	p.f.Last = decide.Answer{Of: decide.ActionCreate}
	p.t.saw(1, decide.SourceRead)
}

// remade checks that what an object lost is created again only by that object, as long as it lives
// and may create it.
func (w *commons) remade(p *commonsPass) {
	at := p.here.Endpoint + "/" + p.id
	had := w.lost[at]
	delete(w.lost, at)
	if had == nil || had == p.h || had.gone || had.deleting || had.tampered || p.h.tampered || had.c != p.h.c {
		return
	}
	if r, err := record.Parse(had.rec); err == nil && r.UID == had.uid && r.ID == p.id && r.Endpoint == p.here.Endpoint {
		w.fail(p.h, "makes for itself what "+had.key()+" ("+had.uid+") had and lost")
	}
}

// release deletes the object: its resource must be gone, unless its users said otherwise.
func (p *commonsPass) release() {
	for _, at := range p.w.things {
		for _, t := range at {
			if t.owner != p.h {
				continue
			}
			excused := p.h.tampered || p.h.annotations.deletion == "orphan" || p.anew || p.f.Seen.Rival != decide.RivalNone ||
				t.mark[record.MarkUID] != p.h.uid && !p.w.k.unmarked || t.mark == nil && p.rec.Adopted != ""
			if t.owner = nil; !excused {
				p.w.fail(p.h, "goes and leaves "+t.id+" behind")
			}
		}
	}
	p.w.remove(p.h)
}

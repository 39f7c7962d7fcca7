package engine

import (
	"maps"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// read returns some version of a slot that a cache may hold.
func (w *model) read(i int) (object, int) {
	s := &w.slots[i]
	v := len(s.versions) - 1
	if w.chance(30) {
		v = max(s.seen, v-w.rng.IntN(5))
	}
	return s.versions[v], v
}

// write changes the current object, if uid still exists and, if locked, the object is still at the
// version that was read.
func (w *model) write(p *modelPass, locked bool, change func(*object)) bool {
	s := &w.slots[p.slot]
	if s.now().uid != p.o.uid || locked && s.version()-1 != p.version {
		return false
	}
	o := *s.now()
	change(&o)
	s.put(o)
	change(&p.o)
	p.version, s.seen = s.version()-1, s.version()-1
	return true
}

// modelPass is one pass of the engine.
type modelPass struct {
	w          *model
	slot       int
	o          object
	version    int
	t          *track
	f          decide.Facts
	have       *thing
	value      int
	observedAt time.Time
}

func (w *model) pass(i int) {
	o, version := w.read(i)
	if o.uid == 0 || w.released[o.uid] {
		return
	}
	p := &modelPass{w: w, slot: i, o: o, version: version, t: w.track(o.uid)}
	if !o.finalizer && (o.deleting || !p.prepare()) {
		return
	}
	if !p.o.rec.Exists() && p.t.known.Exists() && !w.m.forgetsRecords {
		known := p.t.known
		if !p.w.write(p, true, func(o *object) { o.rec = known }) {
			return
		}
	}
	defer func() { p.t.keep(p.o.rec) }()
	defer w.undone()
	if !p.t.read(p.o.rec, w.clock(), w.settled()) && !w.m.noGuard {
		if !p.confirm() { // a stale copy
			return
		}
		p.t.meet(p.o.rec, w.clock(), w.settled())
	}
	if !p.o.deleting && !w.m.forgetsRefusals && !p.withdraw() {
		return
	}
	if w.m.believesNo && p.t.creation == decide.CreationRefused {
		p.t.creation = decide.CreationNone
	}
	if w.m.believesFirst && p.t.creation == decide.CreationUnrecorded {
		p.t.creation = decide.CreationNone
	}
	p.hangs()
	p.recall()
	for range 16 {
		w.steps++
		if w.chance(2) {
			w.crash()
			return
		}
		d := w.m.decide(p.facts())
		p.checkLag(d)
		w.rows[d.Row]++
		w.slots[i].last = d
		if w.v.consistent && !w.v.falseGone && d.Reason == decide.ReasonNotConverging && d.Row == 20 {
			w.fail("gives up on changes that were made")
		}
		p.record(d)
		if !p.act(d) || w.broken != "" {
			return
		}
		if w.chance(3) {
			w.user(w.rng.IntN(2))
		}
	}
	w.fail("a pass does not end")
}

// undone makes somebody else undo what was changed in this pass.
func (w *model) undone() {
	for _, t := range w.undo {
		t.set(w.now, t.old)
	}
	w.undo = nil
}

// checkLag fails the model if a stale observation is final: nothing wakes an object when the
// resource of an earlier object is no longer visible, so it must observe again by itself.
func (p *modelPass) checkLag(d decide.Decision) {
	if t := p.have; d.Reason == decide.ReasonNotOurs && d.Wake == decide.WakeEvent && t != nil && t.owner == 0 && t.deleted != 0 && t.gone <= p.w.born[p.o.uid] {
		p.w.fail("takes what a stale observation shows of an earlier object's thing for the last word")
	}
}

func (p *modelPass) record(d decide.Decision) {
	if !p.w.tracing {
		return
	}
	f := p.facts()
	p.w.log("slot %d v%d uid %d: %s %s (%s)  creation %d since %s fresh %t accepted %t, record %d id %q done %t adopted %q, seen %+v, last %s %s, value %d want %d",
		p.slot, p.version, p.o.uid, d.Row, d.Action, d.Reason, f.Creation, min(f.SinceCreate, time.Hour), f.Fresh, f.DeleteAccepted,
		p.o.rec.Incarnation, p.o.rec.ID, !p.o.rec.Done.IsZero(), p.o.rec.Adopted, f.Seen, f.Last.Of, f.Last.Class, p.value, p.o.want)
}

func (w *model) track(uid int64) *track {
	t := w.tracks[uid]
	if t == nil {
		t = &track{begun: w.clock()}
		w.tracks[uid] = t
	}
	return t
}

// prepare adds the finalizer, together with the first marker where that is possible.
func (p *modelPass) prepare() bool {
	first := p.o.rec
	if known := p.t.known; !first.Exists() && !p.w.m.forgetsRecords {
		first = known
	}
	if (!p.w.v.observesFirst() || p.w.m.firstMarker) && !first.Exists() {
		first = p.w.record(p.o.uid, 1)
		p.t.prepare(first.Create, p.w.v.node)
	}
	return p.w.write(p, true, func(o *object) { o.finalizer, o.rec = true, first })
}

func (w *model) record(uid, incarnation int64) record.Record {
	w.ids++
	return record.Record{
		Incarnation: incarnation, UID: strconv.FormatInt(uid, 10),
		Create: record.Marker{At: w.clock().Add(time.Duration(w.ids)), By: strconv.Itoa(w.process)},
	}
}

// ownMark is the mark of the record's incarnation.
func (p *modelPass) ownMark() map[string]string {
	mark := map[string]string{record.MarkIncarnation: strconv.FormatInt(p.o.rec.Incarnation, 10)}
	maps.Copy(mark, p.w.marks[p.o.uid])
	return mark
}

// settled is the age from which on a record has no effects still to appear.
func (w *model) settled() time.Duration {
	if w.m.eager {
		return 0
	}
	return modelSettled * time.Second
}

// facts returns what the pass knows.
func (p *modelPass) facts() decide.Facts {
	f, o, v := p.f, p.o, p.w.v
	f.Deleting, f.Paused, f.Policy, f.Identity = o.deleting, o.pause, o.policy, v.identity
	f.Generation = o.generation
	f.Grace, f.Unprepared, f.CanMark, f.MarkLater = modelGrace*time.Second, o.unprepared, v.marker, v.late
	f.UniqueNames = v.byName() && !v.twofold || p.w.m.hasty
	f.Record = decide.RecordFacts{Incarnation: o.rec.Incarnation, Marker: o.rec.Progress(), Doubtful: v.observesFirst() && (o.rec.Doubt || p.t.doubtful)}
	f.Record.Expired = o.rec.Create.Expired(p.w.clock(), modelLife*time.Second) && !p.w.m.oldMarkers
	f.Record.KnownID = o.rec.ID != "" || v.byName() && (!v.unmarked || !o.deleting || o.rec.Exists())
	now := p.w.clock()
	if f.Seen.Observed || f.Found != decide.FoundNotAsked {
		now = p.observedAt
	}
	p.t.facts(&f, now)
	if p.w.m.doubtless {
		f.DeleteAccepted = p.t.deleteAccepted
	}
	f.Refused = p.t.refused(p.basis())
	f.Unconfirmed = p.t.unconfirmed(o.generation)
	f.SameUpdates = p.t.sameUpdates(o.generation, strconv.Itoa(o.want))
	return f
}

func (p *modelPass) basis() basis { return basis{generation: p.o.generation, policy: p.o.policy} }

// act does what was decided and reports whether to decide again.
func (p *modelPass) act(d decide.Decision) bool {
	switch d.Action {
	case decide.ActionObserve:
		p.observe()
	case decide.ActionWriteMarker:
		return p.writeMarker(d)
	case decide.ActionCreate:
		return p.create(d)
	case decide.ActionUpdate:
		p.update()
	case decide.ActionDelete:
		p.remove()
	case decide.ActionFindOwned:
		p.find()
	case decide.ActionConfirm:
		return p.confirm()
	case decide.ActionAdopt:
		return p.adopt()
	case decide.ActionMark:
		p.mark()
	case decide.ActionUnmark:
		p.unmark()
	case decide.ActionRemoveFinalizer:
		p.release()
		return false
	case decide.ActionNone, decide.ActionStop:
		return false
	default:
		p.w.fail("the model knows no " + d.Action.String())
	}
	return true
}

// answered notes the last call.
func (p *modelPass) answered(a decide.Action, c decide.Class) decide.Answer {
	p.f.Last = decide.Answer{Of: a, Failed: c != decide.ClassUnknown, Class: c}
	return p.f.Last
}

// observe reads a resource as it was a moment ago.
func (p *modelPass) observe() {
	w := p.w
	p.observedAt = w.clock()
	if w.chance(5) {
		p.answered(decide.ActionObserve, decide.ClassTransient)
		return
	}
	p.answered(decide.ActionObserve, decide.ClassUnknown)
	at := w.readTime()
	p.f.Seen, p.f.Differs, p.have = decide.Seen{Observed: true, Phase: decide.PhaseMissing}, decide.Differs{}, nil
	for _, t := range w.things {
		if t.exists(at) && t.slot == p.slot && (w.v.byName() || strconv.Itoa(t.id) == p.o.rec.ID) {
			p.have = t
		}
	}
	if p.have == nil {
		p.t.sawNothing()
		return
	}
	value := p.have.value
	if at < p.have.changed {
		value = p.have.old
	}
	p.know(p.have.phase(at), value, decide.SourceRead)
}

// know records the state of the observed resource.
func (p *modelPass) know(phase decide.Phase, value int, from decide.Source) {
	w := p.w
	p.value = value
	p.f.Seen = decide.Seen{Observed: true, Phase: phase, Source: from}
	who := decide.Claimant{Mark: markIn(w.marks[p.o.uid]), Record: p.o.rec, Unmarked: w.v.unmarked, Late: w.v.late, Untried: p.t.creation <= decide.CreationRefused, Adoption: p.o.policy.Adoption}
	p.f.Seen.Owner = who.OwnerOf(p.have.mark)
	p.f.Seen.Marked = w.m.anyMark || p.have.mark[record.MarkIncarnation] == p.ownMark()[record.MarkIncarnation]
	if w.m.ownsAll {
		p.f.Seen.Owner = decide.OwnerUs
	}
	p.f.Differs = decide.Differs{InPlace: p.value%10 != p.o.want%10, Recreate: p.value/10 != p.o.want/10}
	if p.f.Seen.Ours() {
		p.t.saw(p.o.generation, from)
	} else {
		p.t.sawNothing()
	}
	if !p.f.Differs.Any() {
		if from == decide.SourceRead {
			w.vain[p.o.uid] = 0
			delete(w.falseGone, p.o.uid)
		} else if w.m.believesAnswers {
			from = decide.SourceRead
		}
		p.t.inSync(p.o.generation, from)
	}
	delete(w.memory, p.o.uid)
	if w.v.consistent && from == decide.SourceAnswer && phase == decide.PhaseAvailable && p.f.Seen.Owner == decide.OwnerUs && p.f.Seen.Marked {
		w.memory[p.o.uid] = memorizedThing{p.have, value, w.now, p.o.generation}
	}
}

// recall uses what the API returned a moment ago.
func (p *modelPass) recall() {
	m, known := p.w.memory[p.o.uid]
	if !known || p.w.now-m.at > modelLag && !p.w.m.elephant || m.generation == p.o.generation && !p.o.deleting {
		return
	}
	p.have, p.observedAt = m.have, p.w.clock()
	p.know(decide.PhaseAvailable, m.value, decide.SourceMemory)
}

// returns records the state that the API returns with its answer to a change.
func (p *modelPass) returns(t *thing) {
	w := p.w
	if !w.v.answers || t == nil || p.f.Last.Failed {
		return
	}
	p.have, p.observedAt = t, w.clock()
	value := t.value
	if w.v.echoes {
		value = p.o.want
	}
	p.know(t.phase(w.now), value, decide.SourceAnswer)
}

func (w *model) readTime() int {
	if !w.v.consistent && w.chance(30) {
		return w.now - w.rng.IntN(modelLag+1)
	}
	return w.now
}

func (t *thing) phase(at int) decide.Phase {
	switch {
	case t.deleted != 0 && at >= t.deleted:
		return decide.PhaseDeleting
	case at < t.ready:
		return decide.PhaseCreating
	}
	return decide.PhaseAvailable
}

func (p *modelPass) writeMarker(d decide.Decision) bool {
	r := p.w.record(p.o.uid, d.Incarnation)
	if d.Incarnation == p.o.rec.Incarnation {
		r.ID, r.Adopted, r.Done = p.o.rec.ID, p.o.rec.Adopted, p.o.rec.Done
	}
	if p.w.v.node {
		p.t.prepare(r.Create, true)
	}
	if !p.w.write(p, !p.w.m.unlockedMarker, func(o *object) { o.rec = r }) {
		return false
	}
	if p.w.chance(5) {
		p.w.crash()
		return false
	}
	if p.w.v.node {
		return false
	}
	p.t.wroteMarker(r.Create, r.Incarnation)
	return true
}

// create calls the API, which may fail in every possible way.
func (p *modelPass) create(d decide.Decision) bool {
	w, o := p.w, p.w.slots[p.slot].now()
	switch {
	case o.uid != p.o.uid || !o.finalizer:
		w.fail("created for an object that is gone")
	case !o.rec.Exists() || o.rec.Incarnation != d.Incarnation && d.Incarnation != 0:
		w.fail("created without a durable marker")
	case !p.o.policy.Create:
		w.fail("created without permission")
	case p.o.pause == decide.PauseAll || p.o.pause == decide.PauseChanges && !p.o.deleting:
		w.fail("created while paused")
	}
	p.f.Did.Create, p.f.Seen = true, decide.Seen{}
	p.f.Found = decide.FoundNotAsked
	x := thing{slot: p.slot, owner: p.o.uid, incarnation: p.o.rec.Incarnation, value: p.o.want}
	if !w.v.observesFirst() {
		x.mark = p.ownMark()
	}
	if w.chance(20) {
		x.ready = 1 + w.rng.IntN(4)
	}
	if !w.m.forgets {
		p.t.createBegins(w.clock())
	}
	if w.v.byName() && w.named(p.slot) == nil && w.chance(4) {
		p.hang(x)
		return false
	}
	made, class := p.callCreate(x)
	switch {
	case w.chance(6):
		w.crash()
		return false
	case w.chance(3): // the pass fails, the process lives on
		return false
	}
	a := p.answered(decide.ActionCreate, class)
	if w.m.noDoubt && class == decide.ClassAmbiguous {
		class = decide.ClassInvalid
	}
	p.t.createAnswered(a.Failed, class, w.clock())
	if a.Failed && decide.NoEffect(class) {
		p.f.Create = a
		if !p.withdraw() {
			return false
		}
	}
	if class == decide.ClassInvalid {
		p.t.refuse(decide.ActionCreate, p.basis(), decide.ClassInvalid, nil)
	}
	if made != nil && class == decide.ClassUnknown && !w.v.byName() {
		id := strconv.Itoa(made.id)
		p.w.write(p, false, func(o *object) { o.rec.ID, o.rec.Done = id, w.clock() })
	}
	p.returns(made)
	return true
}

// hang abandons a create, which may take effect until it returns.
func (p *modelPass) hang(x thing) {
	w := p.w
	out := 1 + w.rng.IntN(modelHang)
	w.out[p.o.uid] = w.now + out
	w.pending = append(w.pending, late{at: w.now + 1 + w.rng.IntN(out), t: x})
	p.t.createHangs(w.clock())
}

// hangs handles an abandoned create.
func (p *modelPass) hangs() {
	until, out := p.w.out[p.o.uid]
	switch {
	case !out || p.w.m.impatient:
	case p.w.now < until:
		p.f.Scope = decide.ScopeOccupied
		p.t.createHangs(p.w.clock())
	default:
		delete(p.w.out, p.o.uid)
		p.t.takeBack(decide.ActionCreate, lateAnswer{failed: true, class: decide.ClassAmbiguous, at: p.w.clock()})
	}
}

// withdraw records that a create was refused.
func (p *modelPass) withdraw() bool {
	if !p.w.v.observesFirst() || !p.t.withdraws(p.o.rec) {
		return true
	}
	return p.w.write(p, true, func(o *object) { o.rec.Refused, o.rec.Doubt = true, p.t.doubtful }) && !p.w.v.node
}

func (p *modelPass) callCreate(x thing) (*thing, decide.Class) {
	w := p.w
	if w.v.byName() && !w.v.twofold && w.named(p.slot) != nil {
		return nil, decide.ClassConflict
	}
	if w.v.lies && w.chance(10) {
		x.ready = 0
		w.land(x)
		w.tick(modelLag) // no engine could see through a lie together with a stale read
		return nil, decide.ClassInvalid
	}
	if !w.chance(40) {
		return w.land(x), decide.ClassUnknown
	}
	switch w.rng.IntN(6) {
	case 0:
		w.land(x)
		return nil, decide.ClassAmbiguous
	case 1:
		w.pending = append(w.pending, late{at: w.now + 1 + w.rng.IntN(modelLate), t: x})
		return nil, decide.ClassAmbiguous
	case 2:
		return nil, decide.ClassTransient
	case 3:
		return nil, decide.ClassThrottled
	case 4:
		return nil, decide.ClassInvalid
	}
	return nil, decide.ClassAmbiguous
}

// touch checks that a resource may be changed.
func (p *modelPass) touch(what string) {
	if t := p.target(); t != nil && t.owner != p.o.uid {
		p.w.fail(what + " what is not ours")
	}
	if p.o.pause == decide.PauseAll || p.o.pause == decide.PauseChanges && !p.o.deleting {
		p.w.fail(what + " while paused")
	}
}

// target returns what a call by the pass's identity affects now.
func (p *modelPass) target() *thing {
	if p.w.v.byName() {
		return p.w.named(p.slot)
	}
	if p.have != nil && p.have.exists(p.w.now) {
		return p.have
	}
	return nil
}

func (p *modelPass) update() {
	w := p.w
	if !p.o.policy.Update || p.o.deleting {
		w.fail("updated without permission")
	}
	p.touch("updated")
	p.f.Did.Update = true
	hash := strconv.Itoa(p.o.want)
	p.f.Seen = decide.Seen{}
	delete(w.memory, p.o.uid)
	class, t := w.anyFault(), p.target()
	if t != nil && (class == decide.ClassUnknown || class == decide.ClassAmbiguous && w.chance(50)) && (!w.v.echoes || !w.chance(90)) {
		t.set(w.now, p.o.want)
		if w.v.consistent && w.chance(70) {
			w.undo = append(w.undo, t)
		}
	}
	if p.answered(decide.ActionUpdate, class); class == decide.ClassUnknown {
		p.t.updateAnswered(p.o.generation, hash)
		if w.vain[p.o.uid]++; w.v.echoes && w.vain[p.o.uid] > 4*decide.NotConvergingAfter {
			w.fail("updates again and again what stays as it is")
		}
	}
	p.returns(t)
}

func (p *modelPass) remove() {
	w := p.w
	switch {
	case !p.o.policy.Delete || p.o.deleting && p.o.policy.Orphan:
		w.fail("deleted without permission")
	case !p.o.deleting && !p.o.policy.Create:
		w.fail("deleted for a re-creation that is not permitted")
	}
	p.touch("deleted")
	p.f.Did.Delete, p.f.Seen = true, decide.Seen{}
	delete(w.memory, p.o.uid)
	if t := p.target(); w.v.falseGone && !p.o.deleting && t != nil && t.mark[record.MarkUID] == strconv.FormatInt(p.o.uid, 10) && w.chance(90) {
		p.pretendGone() // only the mark shows afterwards whose it still is
		return
	}
	class := w.anyFault()
	t := p.target()
	if t != nil && t.created > w.readTime() { // the API does not show it yet
		p.t.deleteAnswered(p.answered(decide.ActionDelete, decide.ClassUnknown).Failed || !w.m.believesAbsence)
		return
	}
	if t != nil && t.deleted == 0 && (class == decide.ClassUnknown || class == decide.ClassAmbiguous && w.chance(50)) {
		t.deleted, t.gone = w.now, w.now
		if w.chance(30) {
			t.gone += 1 + w.rng.IntN(4)
		}
	}
	if !p.answered(decide.ActionDelete, class).Failed && !p.o.deleting {
		p.t.recreating(p.o.generation, p.o.rec.Incarnation, strconv.Itoa(p.o.want))
	}
	p.t.deleteAnswered(p.f.Last.Failed)
	if w.v.answers && class == decide.ClassUnknown && t != nil && t.deleted != 0 && t.gone <= w.now {
		p.isGone()
	}
}

// isGone takes the answer to a delete that the resource is gone.
func (p *modelPass) isGone() {
	p.observedAt = p.w.clock()
	p.t.answeredGone()
	p.f.Seen, p.f.Differs = decide.Seen{Observed: true, Phase: decide.PhaseMissing, Source: decide.SourceAnswer}, decide.Differs{}
	p.t.sawNothing()
}

// pretendGone is a delete that is answered with Gone and does nothing. An engine may fall for that
// a few times for one spec.
func (p *modelPass) pretendGone() {
	w := p.w
	p.answered(decide.ActionDelete, decide.ClassUnknown)
	p.t.deleteAnswered(false)
	p.t.recreating(p.o.generation, p.o.rec.Incarnation, strconv.Itoa(p.o.want))
	p.isGone()
	if w.falseGone[p.o.uid].generation != p.o.generation {
		w.falseGone[p.o.uid] = futileCount{generation: p.o.generation}
	}
	n := w.falseGone[p.o.uid].count + 1
	w.falseGone[p.o.uid] = futileCount{p.o.generation, n}
	if n > 2*decide.NotConvergingAfter { // a create whose answer is lost may have made it
		w.fail("deletes again and again what stays")
	}
}

func (w *model) anyFault() decide.Class {
	if !w.chance(20) {
		return decide.ClassUnknown
	}
	return []decide.Class{decide.ClassAmbiguous, decide.ClassTransient, decide.ClassThrottled, decide.ClassDenied, decide.ClassConflict}[w.rng.IntN(5)]
}

func (p *modelPass) find() {
	w := p.w
	p.observedAt = w.clock()
	at, n := w.readTime(), 0
	for _, t := range w.things {
		if t.exists(at) && t.owner == p.o.uid && t.incarnation == p.o.rec.Incarnation {
			n, p.have = n+1, t
		}
	}
	p.f.Found = decide.Found(1 + min(n, 2))
	p.answered(decide.ActionFindOwned, decide.ClassUnknown)
}

func (p *modelPass) adopt() bool {
	t, uid := p.have, p.o.uid
	if t.mark[record.MarkUID] != "" && t.mark[record.MarkName] != p.w.marks[uid][record.MarkName] {
		p.w.fail("adopted what another object has marked")
	}
	r := p.o.rec
	if !r.Exists() || !p.f.Seen.Ours() && p.f.Found != decide.FoundOne {
		r = p.w.record(uid, max(1, r.Incarnation))
		if !p.f.Seen.Ours() {
			r.Adopted = record.AdoptedFrom(t.mark)
		}
	}
	r.Done = p.w.clock()
	if !p.w.v.byName() {
		r.ID = strconv.Itoa(t.id)
	}
	if !p.w.write(p, true, func(o *object) { o.rec = r }) {
		return false
	}
	if now := p.target(); now != nil && record.AdoptedFrom(now.mark) == record.AdoptedFrom(t.mark) {
		now.owner = uid // the resource that has the name is the adopted one
	}
	if p.w.v.node {
		return false
	}
	p.t.adopted(r, p.w.clock())
	p.f.Seen = decide.Seen{}
	return true
}

// confirm reads the object as it really is. It requires the same content, not the very version.
func (p *modelPass) confirm() bool {
	s := &p.w.slots[p.slot]
	now := *s.now()
	now.unprepared, now.want = p.o.unprepared, p.o.want // a new want is a new generation
	if now.deleting {
		now.generation = p.o.generation
	}
	if now != p.o {
		return false
	}
	p.t.fresh, s.seen = true, p.version
	return true
}

func (p *modelPass) mark() {
	if !p.o.policy.Update && (!p.w.v.late || !p.o.policy.Create) || p.o.deleting {
		p.w.fail("marked without permission")
	}
	p.touch("marked")
	p.f.Did.Mark, p.f.Seen = true, decide.Seen{}
	class := p.w.anyFault()
	if t := p.target(); t != nil && (class == decide.ClassUnknown || class == decide.ClassAmbiguous && p.w.chance(50)) {
		t.mark = p.ownMark()
		p.w.tick(modelLag) // stale reads show it without the mark
	}
	p.answered(decide.ActionMark, class)
}

func (p *modelPass) unmark() {
	p.f.Did.Unmark = true
	if t := p.target(); t != nil && t.owner == p.o.uid {
		t.owner, t.mark = 0, nil
	}
	p.answered(decide.ActionUnmark, decide.ClassUnknown)
}

// release removes the finalizer, and with it the object.
func (p *modelPass) release() {
	w, uid := p.w, p.o.uid
	if p.o.policy.Orphan || !p.o.policy.Delete {
		w.orphaned[uid] = true
	}
	if p.o.rec.Adopted != "" && p.o.policy.Adoption < decide.AdoptIfIdentical {
		w.orphaned[uid] = true // only the record says that it was adopted, and the policy no longer allows that
	}
	if !w.orphaned[uid] {
		w.checkReleased(uid)
	}
	for _, t := range w.things {
		if t.owner == uid {
			t.owner = 0
		}
	}
	if w.write(p, false, func(o *object) { *o = object{} }) {
		w.released[uid] = true
	}
}

// answered reports whether a create with this token was answered before, so that another one makes
// nothing.
func (w *model) answered(t thing) bool {
	return w.v.identity == decide.IdentityToken && w.tokens[token{t.owner, t.incarnation}] != nil
}

// checkReleased checks that nothing of the object is left or still to appear.
func (w *model) checkReleased(uid int64) {
	for _, t := range w.things {
		if t.owner == uid && t.deleted == 0 {
			w.fail("the finalizer went while the thing lives")
		}
	}
	for _, l := range w.pending {
		if l.t.owner == uid && !w.answered(l.t) {
			w.fail("the finalizer went while a create may still come")
		}
	}
}

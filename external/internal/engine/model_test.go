package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// The model: a simple world of one external API, the Kubernetes objects in it, and an engine that
// only does what package decide says, walked at random. It states a second time, independently,
// what the engine must never do.

// The faults of the world, in seconds of its clock.
const (
	modelLag   = 3 // reads of the API are at most this stale
	modelLate  = 4 // a create whose answer was lost takes effect at most this late
	modelGrace = modelLag + modelLate + 1
	modelSkew  = 2             // clocks of processes are at most this far ahead of or behind the world's
	modelLife  = 6             // a create is called under a marker that is younger
	modelHang  = 4 * modelLate // a call that hangs returns after at most this long
	// modelSettled is the age from which on a record has no effects still to appear.
	modelSettled = modelLife + modelHang + modelGrace + 2*modelSkew
)

// variant is a kind of API.
type variant struct {
	name     string
	identity decide.Identity
	unmarked bool
	marker   bool // an existing resource can be marked
	late     bool // a create cannot carry the mark
	// twofold: two resources can have the same name at the same time.
	twofold bool
	// lies: the API may answer that a create was refused although it made the resource.
	lies bool
	// answers: the API returns the state with its answer to a change.
	answers bool
	// echoes: what it returns is the request, which does not always match the resource.
	echoes bool
	// falseGone: a delete in order to recreate is often answered with Gone, and does nothing.
	falseGone bool
	// consistent: reads never lag behind writes.
	consistent bool
	// node: the object exists only in the record of a node. What is to be recorded is written after the
	// pass that asks for it, which ends there.
	node bool
}

// observesFirst reports whether no mark shows what existed before a create.
func (v variant) observesFirst() bool { return v.unmarked || v.late }

// byName reports whether we choose a resource's name.
func (v variant) byName() bool { return v.identity == decide.IdentityDeterministic }

// mutant is an engine with a bug; the zero mutant has none.
type mutant struct {
	decide          func(decide.Facts) decide.Decision
	unlockedMarker  bool // overwrites whatever marker there is
	noDoubt         bool // takes a lost answer for a refusal
	doubtless       bool // forgets that a create may still take effect
	noGuard         bool // believes every object it reads
	ownsAll         bool // takes every resource for its own
	forgets         bool // notes a create only after its answer
	impatient       bool // does not wait for an abandoned call
	believesFirst   bool // takes the first record on an object for the first that ever existed
	hasty           bool // treats names as unique that are not
	oldMarkers      bool // calls creates under markers of any age
	believesNo      bool // takes a refused create for one that was never called
	forgetsRefusals bool // does not retry recording a refusal
	forgetsRecords  bool // does not restore a record that it knows
	anyMark         bool // takes the mark of any incarnation for its own
	firstMarker     bool // writes the first record before it observes
	eager           bool // takes every record for old
	believesAbsence bool // takes "not found" for an accepted delete
	elephant        bool // acts on state however long ago it was returned
	believesAnswers bool // trusts what an API returns with its answer like a read
}

// object is one version of a custom resource; uid 0 means that it does not exist.
type object struct {
	uid        int64
	generation int64
	want       int
	deleting   bool
	finalizer  bool
	rec        record.Record
	policy     decide.Policy
	pause      decide.Pause
	unprepared bool
}

// slot is a namespace and name, with all versions of its objects.
type slot struct {
	versions []object
	// seen is the oldest version that this process may still read: a cache shows a process its own
	// writes.
	seen int
	last decide.Decision
}

func (s *slot) now() *object { return &s.versions[len(s.versions)-1] }
func (s *slot) put(o object) { s.versions = append(s.versions, o) }
func (s *slot) version() int { return len(s.versions) }

// thing is one external resource, from its creation to its deletion.
type thing struct {
	id          int
	slot        int
	owner       int64 // the object that created or adopted it; 0 if none
	incarnation int64
	mark        map[string]string
	value, old  int // old until changed+lag
	changed     int
	created     int
	ready       int // Creating before
	deleted     int // Deleting from here, 0 while alive
	gone        int
}

func (t *thing) exists(at int) bool { return t.created <= at && (t.deleted == 0 || at < t.gone) }

// memorizedThing is a resource as the API returned it a moment ago.
type memorizedThing struct {
	have       *thing
	value      int
	at         int
	generation int64
}

// late is a create that has yet to take effect.
type late struct {
	at int
	t  thing
}

// token identifies a create that is repeated.
type token struct{ owner, incarnation int64 }

type model struct {
	v        variant
	m        mutant
	rng      *rand.Rand
	now      int
	calm     bool
	slots    [2]slot
	things   []*thing
	pending  []late
	tokens   map[token]*thing
	tracks   map[int64]*track
	released map[int64]bool // by this process
	out      map[int64]int  // creates abandoned by this process, and until when
	orphaned map[int64]bool
	marks    map[int64]map[string]string
	memory   map[int64]memorizedThing
	undo     []*thing
	vain     map[int64]int // updates accepted since a read last showed nothing to update
	born     map[int64]int
	// falseGone counts deletions of this process that were answered with Gone and did nothing.
	falseGone map[int64]futileCount
	process   int
	skew      int // of the process's clock
	uids      int64
	ids       int
	steps     int
	rows      [33]int
	broken    string
	tracing   bool
	story     []string
}

func newModel(v variant, m mutant, seed uint64) *model {
	if m.decide == nil {
		m.decide = decide.Next
	}
	w := &model{v: v, m: m, rng: rand.New(rand.NewPCG(seed, 1)), now: 1000, orphaned: map[int64]bool{}, marks: map[int64]map[string]string{}, born: map[int64]int{}, tokens: map[token]*thing{}, vain: map[int64]int{}}
	w.crash()
	for i := range w.slots {
		w.slots[i].put(object{})
	}
	return w
}

func (w *model) chance(percent int) bool { return !w.calm && w.rng.IntN(100) < percent }
func (w *model) fail(what string) {
	if w.broken == "" {
		w.broken = what
	}
}

// log keeps the latest events for the failure message.
func (w *model) log(format string, args ...any) {
	if !w.tracing {
		return
	}
	w.story = append(w.story, fmt.Sprintf("%d ", w.now)+fmt.Sprintf(format, args...))
	if len(w.story) > 60 {
		w.story = w.story[1:]
	}
}

// clock is the clock of the current process.
func (w *model) clock() time.Time { return time.Unix(int64(w.now+w.skew), 0) }

func (w *model) crash() {
	w.log("crash")
	w.process++
	w.tracks, w.released, w.out = map[int64]*track{}, map[int64]bool{}, map[int64]int{}
	w.memory, w.falseGone = map[int64]memorizedThing{}, map[int64]futileCount{}
	w.skew = w.rng.IntN(2*modelSkew+1) - modelSkew
	for i := range w.slots {
		w.slots[i].seen = 0
	}
	for i := range w.pending { // a request that was sent may arrive, and no other is sent
		w.pending[i].at = min(w.pending[i].at, w.now+modelLate)
	}
}

// walk makes n steps. After each hundred events there is a calm in which everything must settle.
func (w *model) walk(n int) {
	for w.steps < n && w.broken == "" {
		for range 100 {
			w.event()
			w.pass(w.rng.IntN(len(w.slots)))
			if w.broken != "" {
				return
			}
		}
		w.settle()
	}
}

// event makes a user, the external system or time act.
func (w *model) event() {
	w.tick(w.rng.IntN(3))
	i := w.rng.IntN(len(w.slots))
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		w.user(i)
	case 7:
		if w.chance(20) {
			w.strip(i)
			w.takeOff(i)
		}
	case 3:
		w.drift(i)
	case 4:
		if w.chance(50) {
			w.intruder(i)
		}
	case 5:
		if w.chance(40) {
			w.crash()
		}
	case 6:
		if w.chance(30) {
			w.tick(modelGrace)
		}
	}
}

// tick lets time pass and late creates take effect.
func (w *model) tick(n int) {
	for range n {
		w.now++
		for k := 0; k < len(w.pending); k++ {
			if w.pending[k].at > w.now {
				continue
			}
			p := w.pending[k]
			w.pending = append(w.pending[:k], w.pending[k+1:]...)
			k--
			w.land(p.t)
		}
	}
	if len(w.things) > 24 {
		w.forget()
	}
}

// forget drops resources deleted so long ago that no read shows them.
func (w *model) forget() {
	kept := w.things[:0]
	for _, t := range w.things {
		if t.deleted == 0 || t.gone+2*modelLag > w.now {
			kept = append(kept, t)
		}
	}
	w.things = kept
}

// named returns the resource that exists in a slot now.
func (w *model) named(i int) *thing {
	for _, t := range w.things {
		if t.slot == i && t.exists(w.now) {
			return t
		}
	}
	return nil
}

// land makes a resource exist.
func (w *model) land(t thing) *thing {
	if w.v.byName() && !w.v.twofold && w.named(t.slot) != nil {
		return nil
	}
	if w.v.observesFirst() && w.orphaned[t.owner] && w.slots[t.slot].now().rec.Exists() {
		return nil // appears while another object observes it, which no engine could detect
	}
	if w.v.identity == decide.IdentityToken {
		if first := w.tokens[token{t.owner, t.incarnation}]; first != nil {
			return first
		}
	}
	w.ids++
	t.id, t.created, t.old, t.changed = w.ids, w.now, t.value, w.now
	if t.ready != 0 {
		t.ready = w.now + t.ready
	}
	if t.owner != 0 {
		for _, other := range w.things {
			if other.owner == t.owner && other.incarnation == t.incarnation && other.exists(w.now) {
				w.fail("two live things of one incarnation")
			}
		}
		if !w.alive(t.owner) && !w.orphaned[t.owner] {
			w.fail("a thing came into being after its object had gone")
		}
	}
	w.things = append(w.things, &t)
	if w.v.identity == decide.IdentityToken {
		w.tokens[token{t.owner, t.incarnation}] = &t
	}
	w.log("landed: slot %d thing %d of uid %d inc %d", t.slot, t.id, t.owner, t.incarnation)
	return &t
}

// alive reports whether an object exists now.
func (w *model) alive(uid int64) bool {
	return w.slots[0].now().uid == uid || w.slots[1].now().uid == uid
}

func (w *model) user(i int) {
	s := &w.slots[i]
	o := *s.now()
	if o.uid == 0 {
		if w.v.observesFirst() || w.v.twofold {
			w.tick(modelHang + modelLag) // until what the last object orphaned is visible
		}
		w.uids++
		o = object{uid: w.uids, generation: 1, want: w.rng.IntN(40), policy: w.policy()}
		w.marks[o.uid], w.born[o.uid] = w.mark(o.uid, i), w.now
		s.put(o)
		w.log("person: slot %d uid %d want %d deleting %t pause %d policy %+v", i, o.uid, o.want, o.deleting, o.pause, o.policy)
		return
	}
	switch w.rng.IntN(6) {
	case 0, 1:
		o.want, o.generation = w.rng.IntN(40), o.generation+1
	case 2, 3:
		if o.deleting {
			return
		}
		o.deleting = true
		if !o.finalizer {
			o = object{}
		}
	case 4:
		o.policy = w.policy()
	case 5:
		o.pause = decide.Pause(w.rng.IntN(3))
	}
	s.put(o)
	w.log("person: slot %d uid %d want %d deleting %t pause %d policy %+v", i, o.uid, o.want, o.deleting, o.pause, o.policy)
}

// strip removes finalizer and record from a live object, as replacing the whole object does. Only
// where we choose the name and resources bear marks can it be known afterwards what was created
// for it, and for an adopted resource only the record shows that. It happens where no stale copy
// is read any more, and what was created becomes visible before the next observation.
func (w *model) strip(i int) {
	s := &w.slots[i]
	o := *s.now()
	if o.uid == 0 || o.deleting || !w.v.byName() || w.v.observesFirst() || o.rec.Adopted != "" {
		return
	}
	o.finalizer, o.rec = false, record.Record{}
	s.put(o)
	s.seen = s.version() - 1
	w.log("person: slot %d uid %d loses its metadata", i, o.uid)
	w.tick(modelHang + modelGrace)
}

// takeOff removes the record of a resource that bears no mark, while the process that knows it
// lives on.
func (w *model) takeOff(i int) {
	s := &w.slots[i]
	o := *s.now()
	if t := w.tracks[o.uid]; o.uid == 0 || !w.v.unmarked || !w.v.byName() || t == nil || t.known != o.rec {
		return
	}
	o.rec = record.Record{}
	s.put(o)
	s.seen = s.version() - 1
	w.log("person: slot %d uid %d loses its record", i, o.uid)
	w.calm = true
	w.pass(i)
	w.calm = false
}

func (w *model) policy() decide.Policy {
	p := decide.Policy{Create: !w.chance(20), Update: !w.chance(20), Delete: !w.chance(20), Adoption: decide.AdoptIfMarked}
	p.Orphan = w.chance(10)
	if w.chance(30) {
		p.Adoption = decide.Adoption(w.rng.IntN(4))
	}
	return p
}

func (w *model) mark(uid int64, slot int) map[string]string {
	return map[string]string{record.MarkUID: strconv.FormatInt(uid, 10), record.MarkKind: "Thing.example.org", record.MarkName: strconv.Itoa(slot)}
}

// drift changes or deletes resources outside the operator.
func (w *model) drift(i int) {
	for _, t := range w.things {
		if t.slot != i || !t.exists(w.now) || !w.chance(60) {
			continue
		}
		if w.chance(40) {
			t.deleted, t.gone = w.now, w.now
			w.log("drift: slot %d thing %d deleted", i, t.id)
			continue
		}
		t.set(w.now, w.rng.IntN(40))
		w.log("drift: slot %d thing %d is %d", i, t.id, t.value)
	}
}

func (t *thing) set(now, value int) { t.old, t.value, t.changed = t.value, value, now }

// intruder puts a foreign resource under one of our names, or removes a mark. Both happen only
// where no read can still show the earlier state: no API allows acting on what was read without
// any chance of a change in between.
func (w *model) intruder(i int) {
	t := w.named(i)
	switch {
	case !w.v.byName():
	case t == nil && w.quiet(i) && !w.byRecord(i):
		x := thing{slot: i, value: w.rng.IntN(40)}
		if w.chance(30) {
			x.mark = w.mark(1<<40, 1-i)
		}
		w.land(x)
		w.tick(modelLag)
	case t != nil && t.mark != nil && t.deleted == 0 && (!w.v.late || !w.byRecord(i)) && w.slots[i].now().rec.Adopted != record.AdoptedUnmarked && w.chance(20):
		t.mark, t.owner = nil, 0
		w.tick(modelLag)
	}
}

// byRecord reports whether only a record shows who owns the resource in a slot, so that no engine
// could recognise an intruder.
func (w *model) byRecord(i int) bool {
	r := w.slots[i].now().rec
	return r.Exists() && (w.v.unmarked || r.Adopted != "" || w.v.late && r.Done.IsZero())
}

// quiet reports whether nothing of the slot is visible or still to appear.
func (w *model) quiet(i int) bool {
	for _, l := range w.pending {
		if w.v.twofold && l.t.slot == i {
			return false
		}
	}
	for _, t := range w.things {
		if t.slot == i && (t.deleted == 0 || t.gone+modelLag >= w.now) {
			return false
		}
	}
	return true
}

// settle ends all faults and requires everything to settle.
func (w *model) settle() {
	w.calm = true
	defer func() { w.calm = false }()
	for i := range w.slots {
		s := &w.slots[i]
		if o := *s.now(); o.uid != 0 {
			o.policy, o.pause = decide.Policy{Create: true, Update: true, Delete: true, Adoption: decide.AdoptIfMarked}, decide.PauseNone
			if o.rec.Adopted != "" {
				o.policy.Adoption = decide.AdoptAlways
			}
			o.generation++
			s.put(o)
		}
	}
	for i := range w.slots {
		if !w.rests(i) && w.broken == "" {
			w.fail("slot " + strconv.Itoa(i) + " does not come to rest: " + w.slots[i].last.Row.String() + " " + w.slots[i].last.Action.String())
		}
	}
}

// rests runs passes until the slot is as it should be.
func (w *model) rests(i int) bool {
	for range 60 {
		w.tick(2)
		w.pass(i)
		if w.broken != "" || w.atRest(i) {
			return true
		}
	}
	return w.excused(i)
}

func (w *model) atRest(i int) bool {
	s := &w.slots[i]
	o := s.now()
	if o.uid == 0 {
		return true
	}
	if o.deleting || s.last.State != decide.StateSucceeded {
		return false
	}
	for _, t := range w.things {
		if t.owner == o.uid && t.exists(w.now) && t.value == o.want {
			return true
		}
	}
	return false
}

// excused handles the stops that only a user can end; the model acts as that user.
func (w *model) excused(i int) bool {
	s := &w.slots[i]
	o := *s.now()
	switch s.last.Reason {
	case decide.ReasonNotOurs:
		t := w.named(i)
		if t == nil || t.owner == o.uid && !o.rec.Doubt {
			return false
		}
		t.deleted, t.gone = w.now, w.now
		return true
	case decide.ReasonCreateDoubtful:
		t := w.named(i)
		if t == nil {
			return false
		}
		t.deleted, t.gone = w.now, w.now
		return w.rests(i)
	case decide.ReasonCreateUnknown:
		if w.v.identity != decide.IdentityNone || o.rec.ID != "" {
			return false
		}
		for _, t := range w.things {
			if t.owner == o.uid {
				t.owner = 0
			}
		}
		s.put(object{})
		return true
	}
	return false
}

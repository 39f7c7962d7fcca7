package engine

import (
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/loop"
)

// track is what this process remembers about creating and changing one thing. It makes
// passes cheaper and sees through stale reads; a process that starts without it is slower
// to decide, never wrong.
type track struct {
	// marker is the one this process wrote last; zero if it wrote none.
	marker record.Marker
	// met is that of another process which this one goes by.
	met record.Marker
	// parsed is the content of the annotation that was read last, which most passes find again.
	parsed parsed
	// known is the record as this process last read or wrote it.
	known record.Record
	// prepared is a marker that somebody else was asked to write for us, and which counts
	// once it is read.
	prepared record.Marker
	// fresh: the object was written, or read from the API server itself, by this process.
	fresh bool
	// incarnation is the highest one seen.
	incarnation int64
	// creation is what is known about creating it.
	creation decide.Creation
	// doubtful: a create was refused for another reason than that the name is taken.
	doubtful bool
	// given is what the API assigned to what the last create or update made; nil before any.
	given *assigned
	// called is when a create was called, or may have been.
	called time.Time
	// doubt is when a create was or may have been called whose effect nobody knows, and
	// which may therefore still come. Zero: there is none.
	doubt time.Time
	// deleteAccepted: the API accepted a delete since the last create.
	deleteAccepted bool
	// before is what was known before the create that is under way; nil if none is.
	before *knowledge
	// updates counts accepted changes that left a difference as it was.
	updates updateCount
	// marks counts accepted marks in a row that no look shows.
	marks markCount
	// refusal is the call that the API refused for good.
	refusal refusal
	// tried is the generation at which the thing last had its chance: it was in sync, or the
	// API accepted a change of it. 0: not in this process.
	tried int64
	// waiting is what the dependencies lack, and unready since when it has been this.
	waiting []loop.Dep
	unready time.Time
	// polls counts looks in a row that found work under way, by decision.
	polls   int
	polling decide.Row
	// changing is what the last accepted change was to do, for people.
	changing string
	// warned: it was logged that another installation works on the object.
	warned bool
	// said is what was reported last; recalled: the generation for which an earlier process
	// reported Ready was looked up.
	said     decide.Reported
	recalled bool
	// wish is what was wanted when the thing was last as asked for.
	wish wish
	// begun is when this process first visited the object.
	begun time.Time
	// released: the object was let go.
	released bool
	// visited is when the object was last looked at.
	visited time.Time
}

// parsed is the content of an annotation.
type parsed struct {
	value  string
	record record.Record
}

// parse is [record.Parse] with the last record at hand.
func (t *track) parse(value string) (record.Record, error) {
	if t.parsed.value == value {
		return t.parsed.record, nil // the zero value is right, too: no annotation is no record
	}
	r, err := record.Parse(value)
	if err == nil {
		t.parsed = parsed{value, r}
	}
	return r, err
}

// knowledge is what is known about creating a thing.
type knowledge struct {
	creation       decide.Creation
	called, doubt  time.Time
	deleteAccepted bool
}

// updateCount counts accepted changes by the difference that they were to remove, since the
// thing was last as asked for. Two differences may take turns: each change that removes one
// brings the other back.
type updateCount struct {
	generation int64
	by         map[string]int
	// incarnation is the one that was last deleted to be made anew: several deletes of one
	// thing are one attempt.
	incarnation int64
}

// markCount counts marks for a generation since the first.
type markCount struct {
	generation int64
	count      int
	first      time.Time
}

// mostDifferences bounds the differences that are told apart. Nothing has that many on its way
// to what is asked for; beyond them all count as one.
const mostDifferences = 50

// refusal is a call that the API refused for good, and what it depended on.
type refusal struct {
	action decide.Action
	basis  basis
	class  decide.Class
	err    error
}

// basis is what a call rested on: as long as it is the same, so is the answer.
type basis struct {
	generation int64
	policy     decide.Policy
	// asked is the token of the person who asked for a pass.
	asked string
}

// read takes in the record of an object that was just read. It answers false if the record
// is behind what this process wrote itself: the object is an old copy, or somebody changed
// the record. settled is the age from which on a record tells of nothing that may still come.
func (t *track) read(r record.Record, now time.Time, settled time.Duration) bool {
	if r.Exists() && r.Create == t.prepared {
		t.wrotePrepared(r)
	}
	if t.ahead(r) {
		return false
	}
	known := r.Create == t.marker || r.Create == t.met
	if r.Exists() && r.Incarnation == t.incarnation && known {
		return true
	}
	t.meet(r, now, settled)
	return true
}

// keep notes the record that a pass ended with, if it is the one that this process goes by.
func (t *track) keep(r record.Record) {
	if r.Exists() && (r.Create == t.marker || r.Create == t.met) {
		t.known = r
	}
}

// ahead: this process wrote something later than r.
func (t *track) ahead(r record.Record) bool {
	if r.Incarnation != t.incarnation {
		return r.Incarnation < t.incarnation
	}
	return r.Create.At.Before(t.marker.At)
}

// meet takes in a record that another process wrote. What it did after that is unknown, and
// it may have done it a moment ago, unless the record is so old that it called nothing since.
func (t *track) meet(r record.Record, now time.Time, settled time.Duration) {
	quiet := t.called.IsZero() || now.Sub(t.called) >= settled
	*t = track{
		met: r.Create, parsed: t.parsed, known: t.known, given: t.given, fresh: t.fresh, incarnation: r.Incarnation, updates: t.updates, refusal: t.refusal,
		begun: t.begun, tried: t.tried, changing: t.changing, waiting: t.waiting, unready: t.unready, visited: t.visited,
		said: t.said, recalled: t.recalled, wish: t.wish,
	}
	switch r.Progress() {
	case record.MarkerNone:
	case record.MarkerPending:
		t.creation, t.called, t.doubt = decide.CreationPossible, now, now
		if quiet && now.Sub(r.Create.At) >= settled {
			t.creation, t.called, t.doubt = decide.CreationSettled, r.Create.At, time.Time{}
		}
	case record.MarkerDone:
		t.creation, t.called = decide.CreationSeen, r.Done
		if r.Done.After(now) { // another machine's clock
			t.called = now
		}
	}
}

// wroteMarker notes that m is durable for an incarnation.
func (t *track) wroteMarker(m record.Marker, incarnation int64) {
	if incarnation != t.incarnation {
		t.creation, t.called, t.deleteAccepted, t.doubtful = decide.CreationNone, time.Time{}, false, false
	}
	t.marker, t.incarnation, t.fresh = m, incarnation, true
}

// wrotePrepared notes that the prepared marker is durable. It does not undo what this process
// did by an earlier record that the object has lost.
func (t *track) wrotePrepared(r record.Record) {
	before := *t
	t.wroteMarker(r.Create, r.Incarnation)
	t.creation = max(before.creation, decide.CreationUntold)
	t.called, t.deleteAccepted = before.called, before.deleteAccepted
	t.prepared = record.Marker{}
}

// createBegins notes that a create is called now, which may take effect whatever becomes of
// the call.
func (t *track) createBegins(now time.Time) {
	t.before = &knowledge{t.creation, t.called, t.doubt, t.deleteAccepted}
	if t.creation < decide.CreationPossible || t.creation == decide.CreationSettled {
		t.creation = decide.CreationPossible
	}
	t.called, t.doubt, t.deleteAccepted = now, now, false
}

// createAnswered notes what a create came to. Only an answer that can mean nothing else
// says that nothing was created.
func (t *track) createAnswered(failed bool, c decide.Class, now time.Time) {
	before := t.before
	if failed && !decide.NoEffect(c) {
		t.createHangs(now)
		return
	}
	if before != nil {
		t.creation, t.called, t.doubt, t.deleteAccepted = before.creation, before.called, before.doubt, before.deleteAccepted
		t.before = nil
	}
	if !failed {
		t.creation = decide.CreationCalled
		t.called, t.deleteAccepted = now, false
		return
	}
	t.creation = max(t.creation, decide.CreationRefused)
	t.doubtful = t.doubtful || c != decide.ClassConflict
}

// createHangs notes that a create may still take effect, as one that was left behind may.
func (t *track) createHangs(now time.Time) {
	t.createBegins(now)
	t.before = nil
}

// takeBack notes what a call came to that had been left behind.
func (t *track) takeBack(a decide.Action, answer lateAnswer) {
	switch a {
	case decide.ActionCreate:
		t.createAnswered(answer.failed, answer.class, answer.at)
	case decide.ActionDelete:
		t.deleteAnswered(answer.failed)
	default: // looking tells
	}
}

// withdraws tells whether the record must still say that the create which it prepares was
// refused.
func (t *track) withdraws(r record.Record) bool {
	return t.creation == decide.CreationRefused && r.Progress() == record.MarkerPending && r.Create == t.marker
}

// saw notes that the thing exists and is ours.
func (t *track) saw() { t.creation = decide.CreationSeen }

// sawNothing notes that nothing of ours bears the thing's name.
func (t *track) sawNothing() {
	if t.creation == decide.CreationUntold {
		t.creation = decide.CreationNone
	}
}

// adopted notes that a thing was taken over by the record with m. When it came into being
// nobody knows; it may have been a moment ago, so that a read that is behind can still deny
// it.
func (t *track) adopted(m record.Marker, incarnation int64, now time.Time) {
	t.wroteMarker(m, incarnation)
	t.creation, t.called, t.deleteAccepted = decide.CreationSeen, now, false
}

// deleteAnswered notes what a delete came to. That there is nothing to delete is no more than
// a look says, which may be behind the create.
func (t *track) deleteAnswered(refused bool) {
	if !refused {
		t.deleteAccepted = true
	}
}

// updateAnswered notes an accepted change that was to remove a difference.
func (t *track) updateAnswered(generation int64, hash string) {
	u := t.counted(generation)
	if _, known := u.by[hash]; !known && len(u.by) >= mostDifferences {
		hash = ""
	}
	u.by[hash]++
}

// recreating notes an accepted delete of what is to be made anew.
func (t *track) recreating(generation, incarnation int64, hash string) {
	if u := t.counted(generation); u.incarnation != incarnation {
		u.incarnation = incarnation
		t.updateAnswered(generation, hash)
	}
}

// counted are the changes of a generation.
func (t *track) counted(generation int64) *updateCount {
	if t.updates.generation != generation || t.updates.by == nil {
		t.updates = updateCount{generation: generation, by: map[string]int{}}
	}
	return &t.updates
}

// markAnswered notes an accepted mark.
func (t *track) markAnswered(generation int64, now time.Time) {
	if t.marks.count == 0 || t.marks.generation != generation {
		t.marks = markCount{generation: generation, first: now}
	}
	t.marks.count++
}

// inSync notes that the thing is as the spec of a generation asks for, and forgets failed
// attempts to bring it there.
func (t *track) inSync(generation int64, from decide.Source) {
	t.refusal, t.changing, t.tried = refusal{}, "", generation
	if from == decide.SourceRead { // an answer may repeat what was asked for
		t.updates = updateCount{}
	}
}

// unconfirmed reports whether a change was accepted twice for the same difference, and no
// observation has shown since that it had an effect.
func (t *track) unconfirmed(generation int64) bool {
	if t.updates.generation != generation {
		return false
	}
	for _, n := range t.updates.by {
		if n > 1 {
			return true
		}
	}
	return false
}

// sameUpdates is how often this difference outlived a change that was to remove it.
func (t *track) sameUpdates(generation int64, hash string) int {
	if t.updates.generation != generation {
		return 0
	}
	return max(t.updates.by[hash], t.updates.by[""])
}

// refuse notes that the API refused a call for good.
func (t *track) refuse(a decide.Action, b basis, c decide.Class, err error) {
	t.refusal = refusal{action: a, basis: b, class: c, err: err}
}

// refused is the call that need not be repeated, ActionNone if there is none.
func (t *track) refused(b basis) decide.Action {
	if t.refusal.basis != b {
		return decide.ActionNone
	}
	return t.refusal.action
}

// facts fills in what the track knows. now is when the last look began, if there was one:
// what came between it and the decision did not make it any younger.
func (t *track) facts(f *decide.Facts, now time.Time) {
	f.Fresh = t.fresh
	f.Creation = t.creation
	f.SinceCreate = now.Sub(t.called)
	f.SinceMet = now.Sub(t.begun)
	f.VainMarks, f.SinceMark = 0, now.Sub(t.marks.first)
	if t.marks.generation == f.Generation {
		f.VainMarks = t.marks.count
	}
	f.SinceUnready = now.Sub(t.unready)
	unsure := !t.doubt.IsZero() && now.Sub(t.doubt) < f.Grace
	f.DeleteAccepted = t.deleteAccepted && !unsure
}

// waits notes what the object waits for. A dependency that goes after it was unready may take
// things with it then, not before; a process that has just started may have missed it.
func (t *track) waits(waiting []loop.Dep, now time.Time) {
	if !slices.Equal(t.waiting, waiting) {
		t.waiting, t.unready = waiting, now
	}
}

// untried tells of a thing that failed whether the spec of a generation was never tried on it,
// as far as this process knows: one that has just started tries it once.
func (t *track) untried(generation int64) bool { return generation > t.tried }

// poll returns the delay before the next look, which doubles up to most as long as the
// same row asks for it.
func (t *track) poll(row decide.Row, most time.Duration) time.Duration {
	if t.polling != row {
		t.polling, t.polls = row, 0
	}
	d := min(time.Second<<min(t.polls, 10), most)
	t.polls++
	return d
}

// tells notes what was reported of d.
func (t *track) tells(r conditions.Report, d decide.Decision, f decide.Facts) {
	t.said = decide.Remember(r, d, f)
}

// wish is what a spec, and what it refers to, ask of a thing. The zero value is not known.
type wish struct {
	generation int64
	hash       string
}

// same: w is known and is what is asked now.
func (w wish) same(now wish) bool { return w.hash != "" && w == now }

// rest ends a row of polls.
func (t *track) rest() { t.polling, t.polls = 0, 0 }

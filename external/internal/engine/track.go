package engine

import (
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/loop"
)

// track is what this process remembers about creating and changing one resource. It makes passes
// cheaper and detects stale reads; a process that starts without it decides later, never wrongly.
type track struct {
	// marker is the last one that this process wrote; zero if it wrote none.
	marker record.Marker
	// met is the marker of another process that this one has accepted.
	met record.Marker
	// parsed is the content of the annotation that was read last; most passes read the same again.
	parsed parsed
	// known is the record as this process last read or wrote it.
	known record.Record
	// prepared is a marker that another component was asked to write for us; it counts once it is
	// read. unlocked: that write does not fail if the object has changed meanwhile.
	prepared record.Marker
	unlocked bool
	// fresh reports whether this process wrote the object, or read it from the API server itself.
	fresh bool
	// incarnation is the highest one seen.
	incarnation int64
	// creation is what is known about creating the incarnation.
	creation decide.Creation
	// doubtful reports whether a create was refused for a reason other than a name conflict.
	doubtful bool
	// given are the identities that the API assigned in the answer to the last change; nil before any.
	given *assigned
	// uncompleted is the generation whose spec cannot be completed, or need not be; 0: none.
	uncompleted int64
	// applied is what is to be written down that the resource was given; empty: nothing.
	applied string
	// followed is what is known of operations.
	followed followed
	// called is when a create was, or may have been, called.
	called time.Time
	// doubt is when a create of unknown outcome was, or may have been, called, so that its effect
	// may still appear. Zero: there is none.
	doubt time.Time
	// deleteAccepted reports whether the API has accepted a delete since the last create.
	deleteAccepted bool
	// before is what was known before the create in progress; nil if there is none.
	before *knowledge
	// updates counts accepted changes that left a difference as it was.
	updates updateCount
	// gone reports whether the driver answered the last delete that the resource is gone, and nothing
	// was created since. futile counts such answers that a read contradicted.
	gone   bool
	futile futileCount
	// marks counts accepted marks in a row that no observation shows.
	marks markCount
	// refusal is the call that the API permanently refused.
	refusal refusal
	// tried is the generation that was last tried: the resource was in sync with it, or the API
	// accepted a change. 0: none in this process.
	tried int64
	// waiting is what the dependencies lack; unready is since when.
	waiting []loop.Dep
	unready time.Time
	// polls counts observations in a row that found an operation in progress, by decision.
	polls   int
	polling decide.Row
	// changing is what the last accepted change should change, for users.
	changing string
	// warned reports whether it was logged that another installation works on the object.
	warned bool
	// lastReport is what was reported last. recalled: the generation for which an earlier process
	// reported Ready was looked up.
	lastReport decide.Reported
	recalled   bool
	// occurred is what has happened to the object.
	occurred decide.Occurred
	// wish is what was wanted when the resource last matched the spec.
	wish wish
	// observed is when the resource was last observed; zero: not by this process.
	observed time.Time
	// begun is when this process first reconciled the object.
	begun time.Time
	// released reports whether the finalizer was removed.
	released bool
	// visited is when the object was last reconciled.
	visited time.Time
	// login is the version of what the client was made from in the last pass.
	login string
	// outputs is what is known of the connection details that users see.
	outputs outputs
}

// parsed is the content of an annotation.
type parsed struct {
	value  string
	record record.Record
}

// parse is [record.Parse] with a cache of the last record.
func (t *track) parse(value string) (record.Record, error) {
	if t.parsed.value == value {
		return t.parsed.record, nil // the zero value is right, too: without an annotation there is no record
	}
	r, err := record.Parse(value)
	if err == nil {
		t.parsed = parsed{value, r}
	}
	return r, err
}

// knowledge is what is known about creating a resource.
type knowledge struct {
	creation       decide.Creation
	called, doubt  time.Time
	deleteAccepted bool
	gone           bool
}

// updateCount counts accepted changes by the difference that they should have removed, since the
// resource last matched the spec. Two differences may alternate: each change that removes one
// brings the other back.
type updateCount struct {
	generation int64
	by         map[string]int
	// incarnation is the one last deleted in order to recreate it: several deletes of one resource
	// are one attempt.
	incarnation int64
}

// futileCount counts the deletions for a generation that were answered with Gone and changed nothing.
type futileCount struct {
	generation int64
	count      int
}

// markCount counts the marks for a generation since the first.
type markCount struct {
	generation int64
	count      int
	first      time.Time
}

// mostDifferences bounds the differences that are counted separately. No resource needs that many
// before it matches the spec; any further ones count as one.
const mostDifferences = 50

// refusal is a call that the API permanently refused, and what the refusal depends on.
type refusal struct {
	action decide.Action
	basis  basis
	class  decide.Class
	err    error
}

// basis is what a call depended on: while it is the same, so is the answer.
type basis struct {
	generation int64
	policy     decide.Policy
	// login is the version of what the client is made from.
	login string
	// requested is the value of the annotation by which a user asks for a pass.
	requested string
}

// read takes in the record of an object that was just read. It returns false if the record is
// older than what this process wrote: the object is a stale copy, or somebody changed the record.
// settled is the age from which on a record has no effects still to appear.
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

// keep notes the record that a pass ended with, if it carries a marker that this process wrote or
// accepted.
func (t *track) keep(r record.Record) {
	if r.Exists() && (r.Create == t.marker || r.Create == t.met) {
		t.known = r
	}
}

// ahead reports whether this process wrote something later than r.
func (t *track) ahead(r record.Record) bool {
	if r.Incarnation != t.incarnation {
		return r.Incarnation < t.incarnation
	}
	return r.Create.At.Before(t.marker.At)
}

// meet takes in a record that another process wrote. What that process did afterwards is unknown,
// and may have been done a moment ago, unless the record is so old that nothing was called since.
func (t *track) meet(r record.Record, now time.Time, settled time.Duration) {
	quiet := t.called.IsZero() || now.Sub(t.called) >= settled
	*t = track{
		met: r.Create, parsed: t.parsed, known: t.known, given: t.given, fresh: t.fresh, incarnation: r.Incarnation, updates: t.updates, futile: t.futile, refusal: t.refusal,
		begun: t.begun, observed: t.observed, tried: t.tried, changing: t.changing, waiting: t.waiting, unready: t.unready, visited: t.visited,
		lastReport: t.lastReport, recalled: t.recalled, occurred: t.occurred, wish: t.wish, login: t.login, outputs: t.outputs,
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
		t.occurred.Creating = t.occurred.Creating || r.Adopted == ""
		if r.Done.After(now) { // another machine's clock
			t.called = now
		}
	}
}

// wroteMarker notes that m is durable for an incarnation.
func (t *track) wroteMarker(m record.Marker, incarnation int64) {
	if incarnation != t.incarnation {
		t.creation, t.called, t.deleteAccepted, t.doubtful, t.followed = decide.CreationNone, time.Time{}, false, false, followed{}
	}
	t.marker, t.incarnation, t.fresh = m, incarnation, true
}

// prepare notes that another component was asked to write a marker.
func (t *track) prepare(m record.Marker, unlocked bool) { t.prepared, t.unlocked = m, unlocked }

// wrotePrepared notes that the prepared marker is durable. It does not undo what this process did
// under an earlier record that the object has lost.
func (t *track) wrotePrepared(r record.Record) {
	before := *t
	t.wroteMarker(r.Create, r.Incarnation)
	if before.incarnation > 0 && r.Incarnation > before.incarnation { // of that nothing was done yet
		t.creation = decide.CreationUnrecorded
	} else {
		t.creation = max(before.creation, decide.CreationUnrecorded)
		t.called, t.deleteAccepted = before.called, before.deleteAccepted
	}
	t.fresh = before.fresh || !t.unlocked
	t.prepared = record.Marker{}
}

// createBegins notes that a create is being called, which may take effect whatever the outcome of
// the call.
func (t *track) createBegins(now time.Time) {
	t.before = &knowledge{t.creation, t.called, t.doubt, t.deleteAccepted, t.gone}
	if t.creation < decide.CreationPossible || t.creation == decide.CreationSettled {
		t.creation = decide.CreationPossible
	}
	t.called, t.doubt, t.deleteAccepted, t.gone = now, now, false, false
	t.occurred.Creating = true
}

// createAnswered notes the outcome of a create. Only an answer that can mean nothing else shows
// that nothing was created.
func (t *track) createAnswered(failed bool, c decide.Class, now time.Time) {
	before := t.before
	if failed && !decide.NoEffect(c) {
		t.createHangs(now)
		return
	}
	if before != nil {
		t.creation, t.called, t.doubt, t.deleteAccepted, t.gone = before.creation, before.called, before.doubt, before.deleteAccepted, before.gone
		t.before = nil
	}
	if !failed {
		t.creation = decide.CreationCalled
		t.called, t.deleteAccepted, t.gone = now, false, false
		return
	}
	t.creation = max(t.creation, decide.CreationRefused)
	t.doubtful = t.doubtful || c != decide.ClassConflict
}

// createHangs notes that a create may still take effect, like an abandoned one.
func (t *track) createHangs(now time.Time) {
	t.createBegins(now)
	t.before = nil
}

// createDone notes that the operation has succeeded that was to create the resource.
func (t *track) createDone(now time.Time) {
	t.creation, t.called, t.doubt, t.gone = max(t.creation, decide.CreationCalled), now, time.Time{}, false
}

// createFailed notes that the operation has failed that was to create the resource. Something may be left of it, unless
// nothing shows.
func (t *track) createFailed(now time.Time, nothing bool) {
	t.creation, t.called, t.doubt, t.deleteAccepted, t.before = decide.CreationPossible, now, time.Time{}, false, nil
	if nothing {
		t.creation = decide.CreationRefused
	}
}

// takeBack notes the outcome of a call that had been abandoned.
func (t *track) takeBack(a decide.Action, answer lateAnswer) {
	switch a {
	case decide.ActionCreate:
		t.createAnswered(answer.failed, answer.class, answer.at)
	case decide.ActionDelete:
		t.deleteAnswered(answer.failed)
	default: // an observation shows the outcome
	}
}

// withdraws reports whether the record has yet to say that the create it prepares was refused.
func (t *track) withdraws(r record.Record) bool {
	return t.creation == decide.CreationRefused && r.Progress() == record.MarkerPending && r.Create == t.marker
}

// saw notes that the resource exists and is ours.
func (t *track) saw(generation int64, from decide.Source) {
	if t.creation >= decide.CreationPossible && t.creation < decide.CreationSeen { // by a process that was killed before it said so
		t.occurred.Creating = true
	}
	t.creation = decide.CreationSeen
	if !t.gone || from != decide.SourceRead {
		return
	}
	if t.futile.generation != generation {
		t.futile = futileCount{generation: generation}
	}
	t.gone, t.futile.count = false, t.futile.count+1
}

// sawNothing notes that no resource of ours has the name.
func (t *track) sawNothing() {
	if t.creation == decide.CreationUnrecorded {
		t.creation = decide.CreationNone
	}
}

// adopted notes that a resource was adopted by the record r. Its age is unknown; it may have
// been created a moment ago, so that a stale read may still miss it.
func (t *track) adopted(r record.Record, now time.Time) {
	t.wroteMarker(r.Create, r.Incarnation)
	t.occurred.Creating = t.occurred.Creating || r.Adopted == "" // by a process that was killed before it said so
	t.creation, t.called, t.deleteAccepted = decide.CreationSeen, now, false
}

// deleteAnswered notes the outcome of a delete. An answer that there is nothing to delete is worth
// no more than an observation, which may lag behind the create.
func (t *track) deleteAnswered(refused bool) {
	if !refused {
		t.deleteAccepted = true
	}
}

// answeredGone notes that the resource is gone, according to the answer to an accepted delete.
func (t *track) answeredGone() { t.gone = true }

// updateAnswered notes an accepted change that should remove a difference.
func (t *track) updateAnswered(generation int64, hash string) {
	u := t.counted(generation)
	if _, known := u.by[hash]; !known && len(u.by) >= mostDifferences {
		hash = ""
	}
	u.by[hash]++
}

// recreating notes an accepted delete of a resource that is to be recreated.
func (t *track) recreating(generation, incarnation int64, hash string) {
	if u := t.counted(generation); u.incarnation != incarnation {
		u.incarnation = incarnation
		t.updateAnswered(generation, hash)
	}
}

// counted returns the count of changes for a generation.
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

// inSync notes that the resource matches the spec of a generation, and forgets failed attempts to
// get there.
func (t *track) inSync(generation int64, from decide.Source) {
	t.refusal, t.changing, t.tried, t.followed.failure = refusal{}, "", generation, nil
	if from == decide.SourceRead { // an answer may only echo the request
		t.updates, t.futile = updateCount{}, futileCount{}
	}
}

// unconfirmed reports whether a change was accepted twice for the same difference, and no
// observation has shown since that it had an effect, or whether a resource was there after an
// answer that it was gone.
func (t *track) unconfirmed(generation int64) bool {
	if t.futile.count > 0 {
		return true
	}
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

// sameUpdates returns how often this difference survived a change that should have removed it.
func (t *track) sameUpdates(generation int64, hash string) int {
	if t.updates.generation != generation {
		return 0
	}
	return max(t.updates.by[hash], t.updates.by[""])
}

// refuse notes that the API permanently refused a call.
func (t *track) refuse(a decide.Action, b basis, c decide.Class, err error) {
	t.refusal = refusal{action: a, basis: b, class: c, err: err}
}

// refused returns the call that need not be repeated, ActionNone if there is none.
func (t *track) refused(b basis) decide.Action {
	if t.refusal.basis != b {
		return decide.ActionNone
	}
	return t.refusal.action
}

// facts fills in what the track knows. now is when the last observation began, if there was one:
// the time between it and the decision does not make it more recent.
func (t *track) facts(f *decide.Facts, now time.Time) {
	f.Fresh = t.fresh
	f.Creation = t.creation
	f.SinceCreate = now.Sub(t.called)
	f.SinceMet = now.Sub(t.begun)
	f.FutileMarks, f.SinceMark = 0, now.Sub(t.marks.first)
	if t.marks.generation == f.Generation {
		f.FutileMarks = t.marks.count
	}
	f.FutileDeletes = 0
	if t.futile.generation == f.Generation {
		f.FutileDeletes = t.futile.count
	}
	f.SinceUnready = now.Sub(t.unready)
	unsure := !t.doubt.IsZero() && now.Sub(t.doubt) < f.Grace
	f.DeleteAccepted = t.deleteAccepted && !unsure
}

// waits notes what the object waits for. A dependency that is deleted after it became unready may
// take resources with it from then on, not before; a process that has just started may have missed
// that.
func (t *track) waits(waiting []loop.Dep, now time.Time) {
	if !slices.Equal(t.waiting, waiting) {
		t.waiting, t.unready = waiting, now
	}
}

// untried reports whether the spec of a generation was never tried on a failed resource, as far as
// this process knows: a process that has just started tries it once.
func (t *track) untried(generation int64) bool { return generation > t.tried }

// poll returns the delay before the next observation, which doubles up to most as long as the same
// row asks for it.
func (t *track) poll(row decide.Row, most time.Duration) time.Duration {
	if t.polling != row {
		t.polling, t.polls = row, 0
	}
	d := min(time.Second<<min(t.polls, 10), most)
	t.polls++
	return d
}

// reported notes what was reported of d.
func (t *track) reported(r conditions.Report, d decide.Decision, f decide.Facts) {
	t.lastReport = decide.Remember(r, d, f)
	t.occurred.Add(r.Conditions)
}

// rest ends a row of polls.
func (t *track) rest() { t.polling, t.polls = 0, 0 }

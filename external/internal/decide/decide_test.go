package decide

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// given returns the facts of a resource that exists, is ours, is in sync and may be changed in
// every way, after applying the changes.
func given(change ...func(*Facts)) Facts {
	f := Facts{
		Policy:   Policy{Create: true, Update: true, Delete: true, Adoption: AdoptIfMarked},
		Fresh:    true,
		Record:   RecordFacts{KnownID: true, Incarnation: 1, Marker: record.MarkerPending},
		Creation: CreationSeen, SinceCreate: time.Hour, SinceMet: time.Hour, SinceDelete: unmarkWithin, Grace: 10 * time.Second,
		Seen: Seen{Observed: true, Phase: PhaseAvailable, Owner: OwnerUs},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func paused(p Pause) func(*Facts)      { return func(f *Facts) { f.Paused = p } }
func phase(p Phase) func(*Facts)       { return func(f *Facts) { f.Seen.Phase = p } }
func owner(o Owner) func(*Facts)       { return func(f *Facts) { f.Seen.Owner = o } }
func creation(c Creation) func(*Facts) { return func(f *Facts) { f.Creation = c } }
func deletedLately(f *Facts)           { f.SinceDelete = unmarkWithin - 1 }

func since(d time.Duration) func(*Facts) { return func(f *Facts) { f.SinceCreate = d } }
func canMark(f *Facts)                   { f.CanMark = true }
func futileMarks(n int, d time.Duration) func(*Facts) {
	return func(f *Facts) { f.FutileMarks, f.SinceMark = n, d }
}
func met(d time.Duration) func(*Facts)        { return func(f *Facts) { f.SinceMet = d } }
func identity(i Identity) func(*Facts)        { return func(f *Facts) { f.Identity = i } }
func adoption(a Adoption) func(*Facts)        { return func(f *Facts) { f.Policy.Adoption = a } }
func found(n Found) func(*Facts)              { return func(f *Facts) { f.Found = n } }
func recorded(m record.Recorded) func(*Facts) { return func(f *Facts) { f.Record.Marker = m } }
func troubled(t Trouble) func(*Facts)         { return func(f *Facts) { f.Record.Trouble = t } }
func scoped(s Scope) func(*Facts)             { return func(f *Facts) { f.Scope = s } }
func op(s OpState, of Action) func(*Facts)    { return func(f *Facts) { f.Op.State, f.Op.Of = s, of } }
func did(d Did) func(*Facts)                  { return func(f *Facts) { f.Did = d } }
func approval(a Approval) func(*Facts)        { return func(f *Facts) { f.Approval = a } }
func updates(n int) func(*Facts)              { return func(f *Facts) { f.SameUpdates = n } }
func futileDeletes(n int) func(*Facts)        { return func(f *Facts) { f.FutileDeletes = n } }
func alreadyRefused(a Action) func(*Facts)    { return func(f *Facts) { f.Refused = a } }
func differing(d Differs) func(*Facts)        { return func(f *Facts) { f.Differs = d } }
func allowed(c, u, d bool) func(*Facts) {
	return func(f *Facts) { f.Policy.Create, f.Policy.Update, f.Policy.Delete = c, u, d }
}

func failed(a Action, c Class) func(*Facts) {
	return func(f *Facts) { f.Last, f.Seen = Answer{Of: a, Failed: true, Class: c}, Seen{} }
}

func refusedNow(c Class) func(*Facts) {
	return func(f *Facts) { f.Create = Answer{Of: ActionCreate, Failed: true, Class: c} }
}

func expired(f *Facts)     { f.Record.Expired = true }
func doubtful(f *Facts)    { f.Record.Doubtful, f.Record.Marker = true, record.MarkerNone }
func uniqueNames(f *Facts) { f.UniqueNames = true }
func deleting(f *Facts)    { f.Deleting = true }
func notObserved(f *Facts) { f.Seen = Seen{} }
func unknownID(f *Facts)   { f.Record.KnownID, f.Seen = false, Seen{} }
func notFresh(f *Facts)    { f.Fresh = false }
func unready(f *Facts)     { f.Dependencies, f.SinceUnready = DependenciesUnready, time.Minute }
func unreadyNow(f *Facts)  { f.Dependencies = DependenciesUnready }
func accepted(f *Facts)    { f.DeleteAccepted = true }
func unpublished(f *Facts) { f.Unpublished = true }
func incomplete(f *Facts)  { f.Incomplete = true }
func everReady(f *Facts)   { f.ReadyFor = 1 }
func unpublishing(c Class) func(*Facts) {
	return func(f *Facts) { f.Unpublished, f.Publish = true, Answer{Of: ActionPublish, Failed: true, Class: c} }
}
func finishes(f *Facts) { f.Finishes, f.Generation = true, 2 }
func finished(f *Facts) { f.Finishes, f.Did.Finish = true, true }
func unfinished(c Class) func(*Facts) {
	return func(f *Facts) { finished(f); f.Finish = Answer{Of: ActionFinish, Failed: true, Class: c} }
}
func uncompleted(f *Facts) { f.Uncompleted = true }
func unprepared(f *Facts)  { f.Unprepared = true }
func recoverable(f *Facts) { f.Seen.Recoverable = true }
func newSpec(f *Facts)     { f.NewSpec = true }
func orphan(f *Facts)      { f.Policy.Orphan = true }
func canUnmark(f *Facts)   { f.CanUnmark = true }
func answered(f *Facts)    { f.Seen.Source = SourceAnswer }
func remembered(f *Facts)  { f.Seen.Source = SourceMemory }
func unconfirmed(f *Facts) { f.Unconfirmed = true }
func cancellable(f *Facts) { f.Op.Cancellable = true }
func polled(f *Facts)      { f.Op.Polled = true }
func blocks(f *Facts)      { f.Op.Blocks = true }
func hidden(f *Facts)      { f.SinceLost, f.LostGrace = time.Minute, time.Hour }
func spent(f *Facts)       { f.Spent = true }
func unclear(f *Facts)     { f.Policy.DeletionUnclear = true }
func timeout(f *Facts)     { f.Last.Timeout = true }

var (
	inPlace     = differing(Differs{InPlace: true})
	recreate    = differing(Differs{Recreate: true})
	unsupported = differing(Differs{Unsupported: true})
	missing     = func(f *Facts) { f.Seen = Seen{Observed: true, Phase: PhaseMissing} }
)

// brief returns what a row promises, on one line.
func brief(d Decision) string {
	s := fmt.Sprintf("%s %s %s %s", d.Row, d.Action, or(string(d.State), "same"), d.Reason)
	for _, c := range []struct {
		name string
		is   Shown
	}{{"Ready", d.Show.Ready}, {"Creating", d.Show.Creating}, {"Updating", d.Show.Updating}, {"Deleting", d.Show.Deleting}, {"Failed", d.Show.Failed}, {"Paused", d.Show.Paused}} {
		switch c.is {
		case ShowTrue:
			s += " +" + c.name
		case ShowFalse:
			s += " -" + c.name
		case ShowSame:
		}
	}
	if d.Action.Final() && d.Action != ActionRemoveFinalizer {
		s += " " + wakeName(d.Wake)
	}
	return s
}

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

func wakeName(w Wake) string {
	return []string{"now", "event", "backoff", "poll", "soon", "drift", "scope", "dependency", "grace"}[w]
}

// situated is a row of the table in one situation.
type situated struct {
	why  string
	f    Facts
	want string
}

// table is the decision table, by example; docs/decisions.md shows it.
func table() map[string]situated {
	return map[string]situated{
		"D-01 paused, not observed in this pass":        {"observing and reporting go on", given(paused(PauseChanges), notObserved), "D-01 observe same Paused +Paused"},
		"D-01 paused, the resource differs":             {"drift is shown, not repaired", given(paused(PauseChanges), inPlace), "D-01 wait same Paused +Ready +Paused drift"},
		"D-01 paused, the resource does not exist":      {"a pause stops every change", given(paused(PauseChanges), missing), "D-01 wait same Paused -Ready +Paused drift"},
		"D-01 paused, no client":                        {"nothing can be observed, which the message says", given(paused(PauseAll), notObserved, scoped(ScopeUnconnectable)), "D-01 wait same Paused +Paused poll"},
		"D-01 paused, the observation failed":           {"the observation is retried", given(paused(PauseChanges), failed(ActionObserve, ClassTransient)), "D-01 wait same Paused +Paused poll"},
		"D-01 paused with the value all, being deleted": {"only a pause of all stops a deletion", given(paused(PauseAll), deleting), "D-01 wait Terminating Paused -Ready -Creating -Updating +Deleting +Paused event"},
		"D-01 paused with the value changes":            {"only a pause of all stops a deletion", given(paused(PauseChanges), deleting), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},

		"D-02 no client": {"there is nothing to call with", given(scoped(ScopeUnconnectable), notObserved), "D-02 wait Pending ConnectFailed +Failed backoff"},
		"D-02 no client, and nothing is recorded": {"without a client there is no call", given(scoped(ScopeUnconnectable), unknownID, recorded(record.MarkerNone)), "D-02 wait Pending ConnectFailed +Failed backoff"},
		"D-03 the API asked for a pause earlier":  {"throttling is not a failure", given(scoped(ScopeThrottled)), "D-03 wait same Throttled scope"},
		"D-03 a call of this pass was throttled":  {"throttling is not a failure", given(failed(ActionUpdate, ClassThrottled)), "D-03 wait same Throttled scope"},
		"D-03 a delete was throttled":             {"the finalizer stays", given(deleting, failed(ActionDelete, ClassThrottled)), "D-03 wait Terminating Throttled -Ready -Creating -Updating +Deleting scope"},

		"D-04 nothing was created yet":                    {"nothing is called before the dependencies are ready", given(unready, creation(CreationNone), notObserved), "D-04 wait Pending DependenciesNotReady -Ready -Creating -Updating -Failed dependency"},
		"D-04 the first record is written":                {"nothing is called before the dependencies are ready", given(unready, creation(CreationUnrecorded), notObserved), "D-04 wait Pending DependenciesNotReady -Ready -Creating -Updating -Failed dependency"},
		"D-04 the resource was created and lost":          {"it is not created again before the dependencies are ready", given(unready, missing), "D-04 wait Pending DependenciesNotReady -Ready -Creating -Updating -Failed dependency"},
		"D-04 the API is not ready for the call":          {"waiting helps, so it is not a failure", given(failed(ActionCreate, ClassNotReady)), "D-04 wait Pending NotReady -Ready -Creating -Updating -Failed poll"},
		"D-05 not observed in this pass":                  {"its state is still worth reporting", given(unready, notObserved), "D-05 observe Pending DependenciesNotReady -Creating -Updating -Failed"},
		"D-05 the resource differs":                       {"dependents read Ready", given(unready, inPlace), "D-05 wait Pending DependenciesNotReady +Ready -Creating -Updating -Failed dependency"},
		"D-05 the resource may be gone but still visible": {"a read may lag behind the loss of both", given(unreadyNow), "D-05 wait Pending DependenciesNotReady +Ready -Creating -Updating -Failed grace"},
		"D-05 the resource is gone":                       {"there is nothing left to observe", given(unreadyNow, missing), "D-04 wait Pending DependenciesNotReady -Ready -Creating -Updating -Failed dependency"},
		"D-05 a call failed":                              {"the dependency may be its cause", given(unready, failed(ActionObserve, ClassTransient)), "D-05 wait Pending DependenciesNotReady -Creating -Updating -Failed poll"},

		"D-06 a create is in progress, the driver can poll it":       {"the API lets the driver follow the operation", given(op(OpRunning, ActionCreate)), "D-06 poll Creating Creating -Ready +Creating -Updating -Failed"},
		"D-06 an update is in progress, polled in this pass":         {"one poll per pass is enough", given(op(OpRunning, ActionUpdate), polled), "D-06 wait Updating Updating -Ready -Creating +Updating -Failed poll"},
		"D-06 the resource is being deleted for a recreation":        {"the deletion of a resource whose object stays is part of a recreation", given(op(OpRunning, ActionDelete), polled), "D-06 wait Recreating Recreating -Ready -Creating +Updating -Failed poll"},
		"D-06 the API is creating it":                                {"nothing is called while an operation runs", given(phase(PhaseCreating), inPlace), "D-06 wait Creating Creating -Ready +Creating -Updating -Failed poll"},
		"D-06 an update is in progress":                              {"what is being changed is not Ready", given(phase(PhaseUpdating)), "D-06 wait Updating Updating -Ready -Creating +Updating -Failed poll"},
		"D-06 a deletion is in progress, the driver can poll it":     {"the API lets the driver follow the deletion too", given(deleting, op(OpRunning, ActionDelete)), "D-06 poll Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 deleting, its create is in progress and has no id":     {"nothing is left behind", given(deleting, unknownID, creation(CreationSettled), op(OpRunning, ActionCreate)), "D-06 poll Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 deleting, its create has yet to show":                  {"what is created after the finalizer is gone stays for ever", given(deleting, missing, creation(CreationSeen), accepted, op(OpRunning, ActionCreate)), "D-06 poll Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 the API does not say what it does":                     {"until it was Ready, it is being created", given(phase(PhaseInProgress)), "D-06 wait Verifying Verifying -Ready +Creating -Updating -Failed poll"},
		"D-06 the same, of what was Ready":                           {"later, it is being updated", given(phase(PhaseInProgress), everReady), "D-06 wait Verifying Verifying -Ready -Creating +Updating -Failed poll"},
		"D-06 the same, still":                                       {"it stays an update, also if it is not Ready any more", given(phase(PhaseInProgress), reportedBefore(LastReport{Updating: true})), "D-06 wait Verifying Verifying -Ready -Creating +Updating -Failed poll"},
		"D-06 the same, of what was just created again":              {"the former one was Ready, this one never", given(phase(PhaseInProgress), everReady, did(Did{Create: true})), "D-06 wait Verifying Verifying -Ready +Creating -Updating -Failed poll"},
		"D-06 the same, after a delete in order to recreate":         {"it may still be the old one", given(phase(PhaseInProgress), accepted), "D-06 wait Recreating Recreating -Ready -Creating +Updating -Failed poll"},
		"D-06 deleting, which the API refuses until its create ends": {"a deletion that is refused is not asked for again and again", given(deleting, phase(PhaseCreating), op(OpRunning, ActionCreate), blocks), "D-06 poll Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 deleting, its create can be cancelled":                 {"nobody wants it any more", given(deleting, missing, op(OpRunning, ActionCreate), polled, cancellable), "D-06 cancel Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 deleting, its create cannot be followed":               {"nobody wants it any more", given(deleting, failed(ActionPoll, ClassTransient), missing, op(OpRunning, ActionCreate), polled, cancellable), "D-06 cancel Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-06 a deletion is in progress, it could be cancelled":      {"a deletion is wanted", given(deleting, op(OpRunning, ActionDelete), polled, cancellable), "D-06 wait Terminating Deleting -Ready -Creating -Updating +Deleting -Failed poll"},
		"D-07 overdue, it deletes the resource":                      {"a deletion is wanted, however long it takes", given(deleting, op(OpOverdue, ActionDelete), polled, cancellable), "D-07 wait Terminating Timeout -Ready -Creating -Updating +Deleting +Failed poll"},
		"D-07 overdue, and it cannot be followed":                    {"an overdue operation blocks everything else", given(failed(ActionPoll, ClassTransient), op(OpOverdue, ActionCreate), polled, cancellable), "D-07 cancel Failed Timeout -Ready +Creating -Updating +Failed"},
		"D-07 overdue":                              {"it may have ended", given(op(OpOverdue, ActionCreate), cancellable), "D-07 poll Failed Timeout -Ready +Creating -Updating +Failed"},
		"D-07 overdue, the driver can cancel it":    {"an overdue operation blocks everything else", given(op(OpOverdue, ActionCreate), polled, cancellable), "D-07 cancel Failed Timeout -Ready +Creating -Updating +Failed"},
		"D-07 overdue, the driver cannot cancel it": {"waiting is all that is left", given(op(OpOverdue, ActionCreate), polled), "D-07 wait Failed Timeout -Ready +Creating -Updating +Failed poll"},
		"D-07 cancelled in this pass":               {"each call is made at most once per pass", given(op(OpOverdue, ActionUpdate), polled, cancellable, did(Did{Cancel: true})), "D-07 wait Failed Timeout -Ready -Creating +Updating +Failed poll"},

		"D-00 an earlier observation shows no difference":                {"a drift check reads", given(remembered), "D-00 observe same Observing"},
		"D-00 an earlier observation shows no resource":                  {"absence is proven by a read", given(missing, remembered), "D-00 observe same Observing"},
		"D-00 an earlier observation requires a recreation":              {"a recreation loses data", given(differing(Differs{Recreate: true}), remembered), "D-00 observe same Observing"},
		"D-00 a delete is due, an earlier observation shows no resource": {"absence is proven by a read", given(deleting, missing, remembered), "D-00 observe Terminating Observing"},
		"D-00 an answer without our mark":                                {"the driver may have left it out", given(answered, owner(OwnerNobody)), "D-00 observe same Observing"},
		"D-00 an answer with another's mark":                             {"a read must show it", given(answered, owner(OwnerOther)), "D-00 observe same Observing"},
		"D-00 an answer that it has failed":                              {"a read must show it", given(answered, phase(PhaseFailed)), "D-00 observe same Observing"},
		"D-00 an answer of an earlier pass, not confirmed by a read":     {"the answer may only echo the request", given(answered, unconfirmed), "D-00 observe same Observing"},
		"D-00 throttled, with remembered state":                          {"nothing is called", given(remembered, scoped(ScopeThrottled)), "D-03 wait same Throttled scope"},
		"D-17 in sync by the API's answer":                               {"no read is needed", given(answered), "D-17 wait Succeeded Available +Ready -Creating -Updating -Failed drift"},
		"D-18 observed a moment ago":                                     {"no read is needed first", given(inPlace, remembered), "D-18 update Updating Updating +Ready -Creating +Updating -Failed"},
		"D-29 observed a moment ago":                                     {"no read is needed first", given(deleting, remembered), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-30 gone by the API's answer":                                  {"no read is needed", given(deleting, missing, answered, accepted), "D-30 remove finalizer Terminating Absent -Ready -Creating -Updating +Deleting"},

		"D-08 the name identifies it":                                          {"the name finds it", given(creation(CreationPossible), notObserved), "D-08 observe Creating Observing"},
		"D-08 a token identifies it":                                           {"the API returns the first resource", given(identity(IdentityToken), creation(CreationPossible), unknownID), "D-08 create Creating Verifying -Ready +Creating"},
		"D-08 a token identifies it, and the create was repeated in this pass": {"each call is made at most once per pass", given(identity(IdentityToken), creation(CreationPossible), unknownID, did(Did{Create: true})), "D-08 wait Creating Verifying -Ready +Creating soon"},
		"D-08 a token identifies it, and the object may be a stale copy":       {"after a restart the object may be gone", given(identity(IdentityToken), creation(CreationPossible), unknownID, notFresh), "D-08 confirm Creating Verifying -Ready +Creating"},
		"D-09 only the mark identifies it":                                     {"only the mark shows what the lost create made", given(identity(IdentityMark), creation(CreationPossible), unknownID), "D-09 find owned Creating Verifying -Ready +Creating"},
		"D-09 the search found one":                                            {"a resource that bears our mark is ours", given(identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundOne)), "D-09 adopt Creating Verifying -Ready +Creating"},
		"D-09 the search found several":                                        {"a user must choose", given(identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundMany)), "D-09 stop Failed Duplicate -Ready -Creating -Updating +Failed event"},
		"D-09 the search found none":                                           {"it may still appear", given(identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundNothing), since(time.Second)), "D-11 wait Verifying Verifying -Ready +Creating -Updating soon"},
		"D-09 the search found none after the grace period":                    {"a new incarnation, so that a late result is not taken for it", given(identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundNothing)), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-10 nothing identifies what may have been created":                   {"the operator never guesses", given(identity(IdentityNone), creation(CreationPossible), unknownID), "D-10 stop Failed CreateUnknown -Ready -Creating -Updating +Failed event"},
		"D-10 the record cannot be read":                                       {"the operator never guesses", given(troubled(TroubleCorrupt), notObserved), "D-10 stop Failed RecordCorrupt -Ready -Creating -Updating +Failed event"},

		"D-11 not visible since its create":                                  {"reads may lag behind", given(missing, creation(CreationCalled), since(time.Second)), "D-11 wait Verifying Verifying -Ready +Creating -Updating -Failed soon"},
		"D-11 visible once, then not":                                        {"a read may lag behind", given(missing, since(time.Second)), "D-11 wait Verifying Verifying -Ready +Creating -Updating -Failed soon"},
		"D-11 created in this pass":                                          {"the API may not show it yet, even without a grace period", given(missing, creation(CreationCalled), did(Did{Create: true})), "D-11 wait Verifying Verifying -Ready +Creating -Updating -Failed soon"},
		"D-11 the observation shows an earlier resource":                     {"a stale read shows what had the name before", given(owner(OwnerNobody), creation(CreationCalled), since(time.Second)), "D-11 wait Verifying Verifying -Ready +Creating -Updating -Failed soon"},
		"D-11 being deleted, a create may still take effect":                 {"a create may still take effect", given(deleting, missing, creation(CreationPossible), since(time.Second)), "D-11 wait Terminating Verifying -Ready -Creating -Updating +Deleting soon"},
		"D-12 not permitted to create":                                       {"permissions limit what the operator does", given(missing, creation(CreationNone), allowed(false, true, true)), "D-12 stop Failed CreateNotPermitted -Ready -Creating -Updating +Failed drift"},
		"D-12 not permitted to create it again":                              {"a recreation needs the same permission", given(missing, allowed(false, true, true)), "D-12 stop Failed CreateNotPermitted -Ready -Creating -Updating +Failed drift"},
		"D-13 nothing is recorded":                                           {"the record precedes the effect", given(missing, creation(CreationNone), recorded(record.MarkerNone)), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-13 the marker is recorded":                                        {"absence is proven and the marker is durable", given(missing, creation(CreationNone)), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-13 a create was refused, the marker is recorded":                  {"the marker is still valid and need not be written again", given(missing, creation(CreationNone), recorded(record.MarkerPending)), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-11 the answer to a create was lost, names are not unique":         {"it may still appear, and the API allows duplicate names", given(missing, creation(CreationPossible), since(time.Second)), "D-11 wait Verifying Verifying -Ready +Creating -Updating soon"},
		"D-13 the answer to a create was lost, the grace period is over":     {"an earlier create would be visible by now", given(missing, creation(CreationPossible)), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-13 the answer to a create was lost, names are unique":             {"a name cannot be taken twice", given(missing, creation(CreationPossible), since(time.Second), uniqueNames), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-13 the first record is written":                                   {"no resource has the name", given(missing, creation(CreationUnrecorded)), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-13 the object may be a stale copy":                                {"after a restart the object may be gone", given(missing, creation(CreationPossible), notFresh), "D-13 confirm Creating Creating -Ready +Creating -Updating"},
		"D-13 deleted by us for a recreation":                                {"a recreation continues in the same pass", given(missing, accepted, since(time.Second)), "D-13 write marker Recreating Recreating -Ready +Creating -Updating"},
		"D-13 the marker has expired":                                        {"the marker's age shows others when no create is in flight", given(missing, creation(CreationNone), expired), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-13 the name is taken":                                             {"an earlier create may take effect late", given(missing, creation(CreationPossible), since(time.Second), uniqueNames, refusedNow(ClassConflict), did(Did{Create: true})), "D-11 wait Verifying Verifying -Ready +Creating -Updating soon"},
		"D-11 a create whose answer was lost may go on in an operation":      {"nothing may show of it yet", given(missing, creation(CreationPossible), since(time.Minute), hidden), "D-11 wait Verifying Verifying -Ready +Creating -Updating soon"},
		"D-11 deleting, a create whose answer was lost may go on":            {"its resource would stay", given(deleting, missing, creation(CreationPossible), since(time.Minute), hidden), "D-11 wait Terminating Verifying -Ready -Creating -Updating +Deleting soon"},
		"D-13 a create whose answer was lost may go on, names are unique":    {"the API refuses a second one", given(missing, creation(CreationPossible), since(time.Minute), hidden, uniqueNames), "D-13 create Creating Creating -Ready +Creating -Updating"},
		"D-13 the operation that was to create it failed":                    {"its token is used up", given(missing, creation(CreationPossible), since(time.Minute), spent), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-13 the operation that was to create it failed, its id is unknown": {"its token would return the failure", given(unknownID, identity(IdentityToken), creation(CreationRefused), recorded(record.MarkerPending), spent), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-14 missing after a restart":                                       {"it is unknown whether it was lost or never created", given(missing, creation(CreationSettled)), "D-14 write marker Creating MissingAfterRestart -Ready +Creating -Updating"},
		"D-14 it was seen, and is gone":                                      {"a new incarnation needs a marker", given(missing), "D-14 write marker Creating RecreatedAfterExternalDeletion -Ready +Creating -Updating"},
		"D-14 it was recorded as created, and is gone":                       {"the record says that it existed", given(missing, recorded(record.MarkerDone)), "D-14 write marker Creating RecreatedAfterExternalDeletion -Ready +Creating -Updating"},
		"D-14 the API assigned its id, and it is gone":                       {"the token of that create returns the old one", given(missing, identity(IdentityToken), creation(CreationPossible)), "D-14 write marker Creating RecreatedAfterExternalDeletion -Ready +Creating -Updating"},
		"D-13 its id is that of a create that failed":                        {"the new incarnation is no loss", given(missing, identity(IdentityToken), creation(CreationRefused), spent), "D-13 write marker Creating Creating -Ready +Creating -Updating"},
		"D-14 its content was lost":                                          {"a user must agree", given(missing, approval(ApprovalMissing)), "D-14 stop Failed ApprovalRequired -Ready -Creating -Updating +Failed event"},
		"D-14 its content was lost, and the user agreed":                     {"the user has agreed to the loss of its contents", given(missing, approval(ApprovalGiven)), "D-14 write marker Creating RecreatedAfterExternalDeletion -Ready +Creating -Updating"},

		"D-15 no mark": {"not adopted by default", given(owner(OwnerNobody)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-09 the mark was set several times and is gone again":             {"a user has to act", given(owner(OwnerRecorded), canMark, futileMarks(3, time.Minute)), "D-09 stop Failed NotConverging -Ready -Creating -Updating +Failed event"},
		"D-09 the mark was set and is not visible":                          {"a read may lag behind", given(owner(OwnerRecorded), canMark, futileMarks(3, time.Second)), "D-09 mark Verifying Adopting -Ready -Creating -Updating -Failed"},
		"D-15 no mark, the object is new":                                   {"a read may lag behind the deletion of an earlier object", given(owner(OwnerNamesake), met(time.Second)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed soon"},
		"D-15 the owner exists":                                             {"another observation shows nothing new", given(owner(OwnerOther), met(time.Second), rival(RivalHolds)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-15 the mark of another object":                                   {"never adopted, whatever the policy", given(owner(OwnerOther), adoption(AdoptAlways)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-15 marked, record lost, adoption never":                          {"with adoption never, only the record counts", given(recorded(record.MarkerNone), adoption(AdoptNever)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-15 adoption if-identical, it differs":                            {"only what matches the spec may be adopted", given(owner(OwnerNobody), adoption(AdoptIfIdentical), inPlace), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-15 the mark of an object of the same name in another cluster":    {"two clusters may share one API", given(owner(OwnerNamesake)), "D-15 stop Failed NotOurs -Ready -Creating -Updating +Failed event"},
		"D-15 the record is lost, the mark is ours":                         {"its mark proves that it is ours", given(recorded(record.MarkerNone), creation(CreationNone)), "D-09 adopt Verifying Verifying"},
		"D-15 the object was restored from a backup":                        {"backup and mark agree", given(owner(OwnerRestored), recorded(record.MarkerNone), creation(CreationNone)), "D-09 adopt Verifying Verifying"},
		"D-15 adoption if-identical, it does not differ":                    {"adopting it would change nothing", given(owner(OwnerNobody), adoption(AdoptIfIdentical), creation(CreationNone)), "D-09 adopt Verifying Verifying"},
		"D-15 adoption always":                                              {"the policy allows it despite any difference", given(owner(OwnerNobody), adoption(AdoptAlways), inPlace, creation(CreationNone)), "D-09 adopt Verifying Verifying"},
		"D-16 the driver has something left to do":                          {"the object is not Ready before", given(finishes), "D-16 finish Completing Completing +Ready -Creating -Updating -Failed"},
		"D-16 it has done so before":                                        {"it is checked, which is no transition", given(finishes, func(f *Facts) { f.ReadyFor = 2 }), "D-16 finish same Completing +Ready -Creating -Updating -Failed"},
		"D-16 it cannot do so":                                              {"users wait for it", given(unfinished(ClassTransient)), "D-16 wait Failed FinishFailed -Ready -Creating -Updating +Failed backoff"},
		"D-16 it cannot do so any more":                                     {"what it did before is still there", given(everReady, unfinished(ClassTransient)), "D-16 wait Failed FinishFailed -Creating -Updating +Failed backoff"},
		"D-17 the driver has done what was left":                            {"nothing is left", given(finished), "D-17 wait Succeeded Available +Ready -Creating -Updating -Failed drift"},
		"D-16 the API has chosen what the spec leaves unset":                {"the user asked for it", given(uncompleted), "D-16 complete spec Completing Completing +Ready -Creating -Updating -Failed"},
		"D-16 completed in this pass":                                       {"once per pass is enough", given(uncompleted, did(Did{Complete: true})), "D-17 wait Succeeded Available +Ready -Creating -Updating -Failed drift"},
		"D-16 connection details are out of date":                           {"users need them before the object is Ready", given(unpublished), "D-16 publish Completing Completing -Creating -Updating -Failed"},
		"D-16 connection details are out of date, and the spec differs":     {"users need them while the resource is changed, too", given(unpublished, inPlace), "D-16 publish same Completing"},
		"D-16 connection details cannot be published":                       {"users do not get them, so the object is not Ready", given(unpublishing(ClassConflict)), "D-16 wait Failed PublishConflict -Ready -Creating -Updating +Failed backoff"},
		"D-16 connection details of a Ready resource cannot be published":   {"what users have may still work", given(unpublishing(ClassTransient), everReady), "D-16 wait Failed PublishFailed -Creating -Updating +Failed backoff"},
		"D-16 no Secret for the connection details of a new resource":       {"what only the create returns would be lost", given(missing, creation(CreationNone), unpublishing(ClassConflict)), "D-16 wait Failed PublishConflict -Ready -Creating -Updating +Failed backoff"},
		"D-16 a detail that only the create returns is lost":                {"nothing can connect, and only a person can help", given(incomplete), "D-16 stop Failed ConnectionLost -Ready -Creating -Updating +Failed event"},
		"D-18 connection details cannot be published, and the spec differs": {"the change needs no Secret", given(unpublishing(ClassTransient), inPlace), "D-18 update Updating Updating +Ready -Creating +Updating -Failed"},
		"D-17 in sync":               {"there is nothing to do until the next drift check", given(), "D-17 wait Succeeded Available +Ready -Creating -Updating -Failed drift"},
		"D-17 read-only and in sync": {"read-only still reports", given(allowed(false, false, false)), "D-17 wait Succeeded Available +Ready -Creating -Updating -Failed drift"},
		"D-17 degraded":              {"it exists but cannot be used", given(phase(PhaseDegraded)), "D-17 wait Verifying Degraded -Ready -Creating -Updating -Failed poll"},

		"D-18 it can be changed in place":          {"the API can change it in place", given(inPlace), "D-18 update Updating Updating +Ready -Creating +Updating -Failed"},
		"D-18 it is degraded":                      {"the change may repair it; it is not Ready", given(inPlace, phase(PhaseDegraded)), "D-18 update Updating Updating -Ready -Creating +Updating -Failed"},
		"D-18 updated in this pass":                {"an update is given time to take effect", given(inPlace, did(Did{Update: true})), "D-18 wait Updating Updating +Ready -Creating +Updating -Failed soon"},
		"D-18 the object may be a stale copy":      {"after a restart the object may be gone", given(inPlace, notFresh), "D-18 confirm Updating Updating +Ready -Creating +Updating -Failed"},
		"D-19 not permitted to update":             {"Ready shows that it works", given(inPlace, allowed(true, false, true)), "D-19 stop Failed UpdateNotPermitted +Ready -Creating -Updating +Failed drift"},
		"D-19 read-only and out of sync":           {"read-only reports drift and changes nothing", given(inPlace, allowed(false, false, false)), "D-19 stop Failed UpdateNotPermitted +Ready -Creating -Updating +Failed drift"},
		"D-20 three updates changed nothing":       {"changing it back and forth helps nobody", given(inPlace, updates(3)), "D-20 stop Failed NotConverging +Ready -Creating -Updating +Failed event"},
		"D-20 two updates changed nothing":         {"an API may need more than one update", given(inPlace, updates(2)), "D-18 update Updating Updating +Ready -Creating +Updating -Failed"},
		"D-20 three deletes changed nothing":       {"it is said to be gone, and is not", given(recreate, futileDeletes(3)), "D-20 stop Failed NotConverging +Ready -Creating -Updating +Failed event"},
		"D-20 two deletes changed nothing":         {"it may be gone the next time", given(recreate, futileDeletes(2)), "D-21 delete Recreating Recreating -Ready -Creating +Updating -Failed"},
		"D-21 the change requires a new resource":  {"only then is the name free", given(recreate), "D-21 delete Recreating Recreating -Ready -Creating +Updating -Failed"},
		"D-21 the driver prepares deletions":       {"the driver must do something before a deletion", given(recreate, unprepared), "D-21 prepare delete Recreating Recreating -Ready -Creating +Updating -Failed"},
		"D-21 the deletion is in progress":         {"never two deletes without a delay", given(recreate, did(Did{Delete: true})), "D-21 wait Recreating Recreating -Ready -Creating +Updating -Failed poll"},
		"D-21 other changes are possible in place": {"they would be lost", given(differing(Differs{InPlace: true, Recreate: true})), "D-21 delete Recreating Recreating -Ready -Creating +Updating -Failed"},
		"D-22 not permitted to delete":             {"the permission is missing", given(recreate, allowed(true, true, false)), "D-22 stop Failed RecreateNotPermitted +Ready -Creating -Updating +Failed drift"},
		"D-22 not permitted to create":             {"a resource that cannot be created again is not deleted", given(recreate, allowed(false, true, true)), "D-22 stop Failed RecreateNotPermitted +Ready -Creating -Updating +Failed drift"},
		"D-22 a user must approve it":              {"the contents would be lost", given(recreate, approval(ApprovalMissing)), "D-22 stop Failed ApprovalRequired +Ready -Creating -Updating +Failed event"},
		"D-23 a field cannot be changed":           {"no call can make the change", given(unsupported), "D-23 stop Failed Immutable +Ready -Creating -Updating +Failed event"},
		"D-23 other changes are possible":          {"half an update is worse than none", given(differing(Differs{InPlace: true, Recreate: true, Unsupported: true})), "D-23 stop Failed Immutable +Ready -Creating -Updating +Failed event"},
		"D-23 the spec yields no valid name":       {"without a name nothing can be found again", given(troubled(TroubleName), notObserved), "D-23 stop Failed InvalidName -Ready -Creating -Updating +Failed event"},
		"D-23 the spec yields another name":        {"a resource keeps the name it was created under", given(troubled(TroubleRenamed)), "D-23 stop Failed Renamed -Ready -Creating -Updating +Failed event"},
		"D-24 deleted externally":                  {"what is being changed is not Ready", given(phase(PhaseDeleting)), "D-24 wait Verifying DeletedExternally -Ready -Creating -Updating -Failed poll"},
		"D-24 being deleted by us":                 {"it is the first half of a recreation", given(phase(PhaseDeleting), accepted), "D-24 wait Recreating Recreating -Ready -Creating +Updating -Failed poll"},

		"D-25 failed, can recover":                       {"the external system may repair it", given(phase(PhaseFailed), recoverable), "D-25 wait Failed ExternalFailed -Ready -Creating -Updating +Failed backoff"},
		"D-25 failed for good":                           {"a retry cannot help", given(phase(PhaseFailed)), "D-25 stop Failed ExternalFailed -Ready -Creating -Updating +Failed event"},
		"D-25 failed for good, old spec":                 {"the same change did not help before", given(phase(PhaseFailed), recreate), "D-25 stop Failed ExternalFailed -Ready -Creating -Updating +Failed event"},
		"D-25 failed for good, new spec":                 {"the new spec may help", given(phase(PhaseFailed), recreate, newSpec), "D-21 delete Recreating Recreating -Ready -Creating +Updating +Failed"},
		"D-25 cannot follow an operation":                {"it ends by itself, whatever the API says meanwhile", given(failed(ActionPoll, ClassInvalid)), "D-25 wait Failed PollInvalid +Failed poll"},
		"D-25 cannot cancel an operation":                {"it ends by itself, whatever the API says meanwhile", given(failed(ActionCancel, ClassTerminal)), "D-25 wait Failed CancelRefused +Failed poll"},
		"D-31 cannot follow an operation":                {"it ends by itself, whatever the API says meanwhile", given(deleting, failed(ActionPoll, ClassTerminal)), "D-31 wait Terminating PollRefused -Ready -Creating -Updating +Deleting +Failed poll"},
		"D-25 cannot observe":                            {"Ready is kept", given(failed(ActionObserve, ClassTransient)), "D-25 wait Failed ObserveFailed +Failed backoff"},
		"D-25 update failed":                             {"Updating and Failed are both true", given(failed(ActionUpdate, ClassTransient)), "D-25 wait Failed UpdateFailed +Updating +Failed backoff"},
		"D-25 create failed":                             {"a failure is retried", given(failed(ActionCreate, ClassTransient)), "D-25 wait Failed CreateFailed -Ready -Creating -Updating +Failed backoff"},
		"D-25 create denied":                             {"credentials and permissions are corrected outside the cluster, so it is retried", given(failed(ActionCreate, ClassDenied)), "D-25 wait Failed CreateDenied -Ready -Creating -Updating +Failed backoff"},
		"D-25 create: the name is taken":                 {"it may be our own resource", given(failed(ActionCreate, ClassConflict)), "D-00 observe same Observing"},
		"D-25 create: the name is taken but not visible": {"an observation finds no resource of that name", given(missing, creation(CreationRefused), refusedNow(ClassConflict), did(Did{Create: true})), "D-25 wait Failed CreateConflict -Ready -Creating -Updating +Failed backoff"},
		"D-25 create refused":                            {"only a new spec helps", given(failed(ActionCreate, ClassInvalid)), "D-25 stop Failed CreateInvalid -Ready -Creating -Updating +Failed event"},
		"D-25 observation timed out":                     {"a missed deadline has its own reason", given(failed(ActionObserve, ClassTransient), timeout), "D-25 wait Failed Timeout +Failed backoff"},
		"D-25 refused, not tried again":                  {"the same request would get the same answer", given(missing, creation(CreationNone), alreadyRefused(ActionCreate)), "D-25 stop Failed CreateInvalid -Ready -Creating -Updating +Failed event"},
		"D-25 update refused before":                     {"the same request would get the same answer", given(inPlace, alreadyRefused(ActionUpdate)), "D-25 stop Failed UpdateInvalid +Ready +Updating +Failed event"},

		"D-26 no permission to delete":                            {"the resource is left alone", given(deleting, allowed(true, true, false)), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan":                                    {"there is no mark to remove", given(deleting, orphan), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, not observed in this pass":         {"only our own mark is removed", given(deleting, orphan, canUnmark, notObserved), "D-26 observe Terminating Observing"},
		"D-26 deletion orphan, it has our mark":                   {"others can then adopt it", given(deleting, orphan, canUnmark), "D-26 unmark Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, it has the mark of another object": {"a resource that is not ours is left alone", given(deleting, orphan, canUnmark, owner(OwnerOther)), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, the mark was removed in this pass": {"there is nothing left to do", given(deleting, orphan, canUnmark, did(Did{Unmark: true}), notObserved), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, removing the mark failed":          {"removing the mark is retried", given(deleting, orphan, canUnmark, failed(ActionUnmark, ClassTransient)), "D-31 wait Terminating UnmarkFailed -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-26 deletion orphan, the mark cannot be removed":        {"that does not hold back the object", given(deleting, orphan, canUnmark, failed(ActionUnmark, ClassDenied)), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, no client":                         {"the credentials may be gone", given(deleting, orphan, canUnmark, scoped(ScopeUnconnectable), notObserved), "D-26 remove finalizer Terminating Orphaned -Ready -Creating -Updating +Deleting"},
		"D-26 deletion orphan, no client yet":                     {"a process that has just started may have one soon", given(deleting, orphan, canUnmark, scoped(ScopeUnconnectable), notObserved, deletedLately), "D-31 wait Terminating ConnectFailed -Ready -Creating -Updating +Deleting +Failed backoff"},

		"D-27 never created":                                             {"no call is needed", given(deleting, creation(CreationNone), notObserved), "D-27 remove finalizer Terminating NeverCreated -Ready -Creating -Updating +Deleting"},
		"D-27 being deleted, a create was refused":                       {"the API may have created it although it refused", given(deleting, creation(CreationRefused), notObserved), "D-00 observe Terminating Observing"},
		"D-28 refused, and it exists":                                    {"nothing shows who owns it", given(deleting, creation(CreationNone), doubtful, owner(OwnerNobody)), "D-28 wait Terminating CreateDoubtful -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-27 never prepared":                                            {"without a record no create was called", given(deleting, creation(CreationNone), recorded(record.MarkerNone), unknownID), "D-27 remove finalizer Terminating NeverCreated -Ready -Creating -Updating +Deleting"},
		"D-27 the object may be a stale copy":                            {"the record may have been restored", given(deleting, creation(CreationNone), recorded(record.MarkerNone), unknownID, notFresh), "D-27 confirm Terminating NeverCreated -Ready -Creating -Updating +Deleting"},
		"D-27 never created, no client":                                  {"the object must not be undeletable for lack of credentials", given(deleting, creation(CreationNone), notObserved, scoped(ScopeUnconnectable)), "D-27 remove finalizer Terminating NeverCreated -Ready -Creating -Updating +Deleting"},
		"D-27 being deleted, nothing is recorded":                        {"the name may be ours although the record is lost", given(deleting, creation(CreationNone), recorded(record.MarkerNone), notObserved), "D-00 observe Terminating Observing"},
		"D-27 being deleted, only the first record is written":           {"an earlier record may be lost", given(deleting, creation(CreationUnrecorded), notObserved), "D-00 observe Terminating Observing"},
		"D-27 only the first record is written, no client":               {"nothing can be observed", given(deleting, creation(CreationUnrecorded), notObserved, scoped(ScopeUnconnectable)), "D-31 wait Terminating ConnectFailed -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-28 a token identifies it":                                     {"what is found can be deleted", given(deleting, identity(IdentityToken), creation(CreationPossible), unknownID), "D-28 create Terminating Verifying -Ready -Creating -Updating +Deleting"},
		"D-28 only the mark identifies it":                               {"only the mark shows what the lost create made", given(deleting, identity(IdentityMark), creation(CreationPossible), unknownID), "D-28 find owned Terminating Verifying -Ready -Creating -Updating +Deleting"},
		"D-28 the search for the mark found it":                          {"its id must be recorded before it is deleted by that id", given(deleting, identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundOne)), "D-28 adopt Terminating Verifying -Ready -Creating -Updating +Deleting"},
		"D-28 the search for the mark found none":                        {"the finalizer stays", given(deleting, identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundNothing), since(time.Second)), "D-28 wait Terminating Verifying -Ready -Creating -Updating +Deleting soon"},
		"D-28 the search for the mark found none after the grace period": {"an earlier create would be visible by now", given(deleting, identity(IdentityMark), creation(CreationPossible), unknownID, found(FoundNothing)), "D-30 remove finalizer Terminating Absent -Ready -Creating -Updating +Deleting"},
		"D-28 nothing identifies what may have been created":             {"the finalizer stays", given(deleting, identity(IdentityNone), creation(CreationPossible), unknownID), "D-28 stop Terminating CreateUnknown -Ready -Creating -Updating +Deleting +Failed event"},
		"D-28 corrupt record":                                            {"the finalizer stays", given(deleting, troubled(TroubleCorrupt)), "D-28 stop Terminating RecordCorrupt -Ready -Creating -Updating +Deleting +Failed event"},
		"D-29 it exists":                                                 {"it exists and is ours", given(deleting), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-29 while it is being created":                                 {"the creation is not waited for", given(deleting, phase(PhaseCreating)), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-29 while it is being updated":                                 {"the update is not waited for", given(deleting, phase(PhaseUpdating), op(OpRunning, ActionUpdate)), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-29 with a new spec":                                           {"the spec no longer matters", given(deleting, inPlace), "D-29 delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-29 the driver prepares deletions":                             {"the driver must do something before a deletion", given(deleting, unprepared), "D-29 prepare delete Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-29 the deletion is in progress":                               {"a second call is not needed", given(deleting, phase(PhaseDeleting)), "D-29 wait Terminating Deleting -Ready -Creating -Updating +Deleting -Failed poll"},
		"D-29 deleted in this pass":                                      {"a deletion is given time to take effect", given(deleting, did(Did{Delete: true})), "D-29 wait Terminating Deleting -Ready -Creating -Updating +Deleting -Failed poll"},
		"D-29 the delete was refused for now":                            {"Failed must not flap", given(deleting, failed(ActionDelete, ClassConflict)), "D-29 wait Terminating DeleteConflict -Ready -Creating -Updating +Deleting -Failed poll"},
		"D-29 the object may be a stale copy":                            {"after a restart the object may be gone", given(deleting, notFresh), "D-29 confirm Terminating Deleting -Ready -Creating -Updating +Deleting -Failed"},
		"D-30 gone":                                                      {"absence is proven", given(deleting, missing), "D-30 remove finalizer Terminating Absent -Ready -Creating -Updating +Deleting"},
		"D-30 deleted by us":                                             {"the finalizer is removed in the same pass", given(deleting, missing, accepted, since(time.Second)), "D-30 remove finalizer Terminating Absent -Ready -Creating -Updating +Deleting"},
		"D-30 never existed":                                             {"observed although no create is known", given(deleting, missing, creation(CreationUnrecorded), since(time.Second)), "D-30 remove finalizer Terminating Absent -Ready -Creating -Updating +Deleting"},
		"D-28 the API assigned an id, and no mark is visible":            {"only the record says that it is ours", given(deleting, troubled(TroubleGiven), owner(OwnerNobody)), "D-28 wait Terminating UndeclaredID -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-30 belongs to another":                                        {"ours does not exist", given(deleting, owner(OwnerOther)), "D-30 remove finalizer Terminating NotOurs -Ready -Creating -Updating +Deleting"},
		"D-30 unmarked, not adopted":                                     {"ours does not exist", given(deleting, owner(OwnerNobody), adoption(AdoptAlways), creation(CreationNone), recorded(record.MarkerNone)), "D-30 remove finalizer Terminating NotOurs -Ready -Creating -Updating +Deleting"},
		"D-31 delete failed":                                             {"Deleting and Failed are both true, and the finalizer stays", given(deleting, failed(ActionDelete, ClassTransient)), "D-31 wait Terminating DeleteFailed -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-31 delete refused":                                            {"the finalizer stays", given(deleting, failed(ActionDelete, ClassInvalid)), "D-31 wait Terminating DeleteInvalid -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-31 cannot observe":                                            {"the finalizer stays", given(deleting, failed(ActionObserve, ClassDenied)), "D-31 wait Terminating ObserveDenied -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-31 no client":                                                 {"the finalizer stays", given(deleting, scoped(ScopeUnconnectable)), "D-31 wait Terminating ConnectFailed -Ready -Creating -Updating +Deleting +Failed backoff"},
		"D-31 invalid policy":                                            {"neither deleted nor orphaned", given(deleting, unclear), "D-31 stop Terminating PolicyInvalid -Ready -Creating -Updating +Deleting +Failed event"},
		"D-32 the answer to an update was lost":                          {"only an observation shows whether it took effect", given(failed(ActionUpdate, ClassAmbiguous)), "D-32 observe same Verifying"},
		"D-32 the answer to a create was lost, the name identifies it":   {"only an observation shows whether it took effect", given(failed(ActionCreate, ClassAmbiguous)), "D-32 observe same Verifying"},
		"D-32 the answer to a create was lost, the mark identifies it":   {"only a search shows whether it took effect", given(identity(IdentityMark), unknownID, failed(ActionCreate, ClassAmbiguous)), "D-32 find owned same Verifying"},
		"D-32 the answer to a create was lost, a token identifies it":    {"repeating it later returns the first resource", given(identity(IdentityToken), unknownID, failed(ActionCreate, ClassAmbiguous)), "D-32 wait Creating Verifying +Creating soon"},
		"D-32 the answer to a delete was lost":                           {"only an observation shows whether it took effect", given(deleting, failed(ActionDelete, ClassAmbiguous)), "D-32 observe same Verifying"},
	}
}

func TestNext(t *testing.T) {
	tests := table()
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if test.why == "" {
				t.Error("no why")
			}
			if diff := cmp.Diff(test.want, brief(Next(test.f))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

// TestInvariants decides on random facts, even those that no engine would find, and checks what
// must hold for every decision.
func TestInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(20260102, 2))
	rows := map[Row]int{}
	for range 300_000 {
		f := randomFacts(rng)
		d := Next(f)
		rows[d.Row]++
		for what, broken := range violations(f, d) {
			if broken {
				t.Fatalf("%s\nfacts %+v\ndecision %+v", what, f, d)
			}
		}
		if again := Next(f); again != d {
			t.Fatalf("two decisions on the same facts: %+v and %+v", d, again)
		}
	}
	for r := Row(1); r <= 32; r++ {
		if rows[r] == 0 {
			t.Errorf("%s was never decided", r)
		}
	}
}

// TestSucceededIsApplied reports on random facts: who says that an object succeeded, and works for its present
// generation, also says that this generation was applied, and the other way round.
func TestSucceededIsApplied(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261123, 1))
	succeeded := 0
	for range 30_000 {
		f := randomFacts(rng)
		f.Generation, f.ReadyFor = 5, rng.Int64N(6)
		d := Next(f)
		r := Report(d, f, Texts{})
		ready := meta.FindStatusCondition(r.Conditions, api.ConditionReady)
		works := r.State == string(StateSucceeded) && ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == f.Generation
		if d.Show.Ready == ShowTrue && works && !r.Applied || r.Applied && !works {
			t.Fatalf("applied: %t, state %s, %+v\nfacts %+v\ndecision %+v", r.Applied, r.State, ready, f, d)
		}
		if works {
			succeeded++
		}
	}
	if succeeded == 0 {
		t.Error("no object ever succeeded")
	}
}

func violations(f Facts, d Decision) map[string]bool {
	called := d.Action.Mutates()
	return map[string]bool{
		"row out of the table":           d.Row < 0 || d.Row > 32,
		"no reason":                      d.Reason == "",
		"calls without a client":         called && f.Scope != ScopeOpen && d.Action != ActionUnmark,
		"repeats a call":                 d.Action == ActionCreate && f.Did.Create || d.Action == ActionUpdate && f.Did.Update || d.Action == ActionDelete && f.Did.Delete,
		"changes from a stale copy":      called && !f.Fresh,
		"creates without a marker":       d.Action == ActionCreate && f.Record.Marker == record.MarkerNone,
		"creates with a used token":      d.Action == ActionCreate && f.Spent,
		"changes during an operation":    (d.Action == ActionCreate || d.Action == ActionUpdate || d.Action == ActionDelete && !f.Deleting) && f.Op.State != OpNone,
		"lets go of what may be hidden":  d.Action == ActionRemoveFinalizer && d.Row == 30 && d.Reason == ReasonAbsent && f.Seen.Observed && f.SinceLost < f.LostGrace && (f.Creation == CreationPossible || f.Creation == CreationSettled),
		"lets go during an operation":    d.Action == ActionRemoveFinalizer && d.Row != 26 && f.Op.State != OpNone,
		"creates without permission":     d.Action == ActionCreate && !f.Policy.Create,
		"updates without permission":     d.Action == ActionUpdate && !f.Policy.Update,
		"deletes without permission":     d.Action == ActionDelete && (!f.Policy.Delete || !f.Deleting && !f.Policy.Create || f.Deleting && f.Policy.Orphan),
		"creates what is there":          d.Action == ActionCreate && f.Seen.Observed && f.Seen.Phase != PhaseMissing && f.Record.KnownID,
		"changes what is not ours":       (d.Action == ActionUpdate || d.Action == ActionDelete) && (!f.Seen.Observed || f.Seen.Owner == OwnerOther || f.Seen.Owner == OwnerNobody || f.Seen.Owner == OwnerNamesake),
		"changes while paused":           called && (f.Paused == PauseAll || f.Paused == PauseChanges && !f.Deleting),
		"changes without dependencies":   called && !f.Deleting && f.Dependencies == DependenciesUnready,
		"lets go of a living object":     d.Action == ActionRemoveFinalizer && !f.Deleting,
		"lets go by a wrong row":         d.Action == ActionRemoveFinalizer && d.Row != 26 && d.Row != 27 && d.Row != 30,
		"lets go while unsure":           d.Action == ActionRemoveFinalizer && d.Row != 26 && (f.Creation == CreationPossible || f.Creation == CreationCalled) && f.SinceCreate < f.Grace,
		"lets go without an observation": d.Row == 27 && f.Creation != CreationNone && f.Record.KnownID,
		"creates under an old marker":    d.Action == ActionCreate && f.Record.Expired,
		"lets go what may be ours":       d.Row == 30 && f.Record.Doubtful && f.Record.KnownID && f.Seen.Phase != PhaseMissing && f.Seen.Owner == OwnerNobody,
		"lets go what an error hid":      d.Action == ActionRemoveFinalizer && d.Row == 30 && f.Last.Failed,
		"waits for the past forever":     d.Wake == WakeGrace && (f.SinceUnready >= f.Grace || d.Action != ActionNone),
		"ends without a way to go on":    d.Action == ActionNone && d.Wake == WakeNow,
		"says Ready of what is not ours": d.Show.Ready == ShowTrue && !f.Seen.Ours(),
	}
}

func randomFacts(rng *rand.Rand) Facts {
	coin := func(percent int) bool { return rng.IntN(100) < percent }
	phases := []Phase{PhaseMissing, PhaseCreating, PhaseUpdating, PhaseDeleting, PhaseInProgress, PhaseAvailable, PhaseDegraded, PhaseFailed}
	calls := []Action{ActionObserve, ActionCreate, ActionUpdate, ActionDelete, ActionMark, ActionUnmark, ActionPoll, ActionCancel}
	f := Facts{
		Deleting: coin(40), Policy: Policy{Create: coin(80), Update: coin(80), Delete: coin(80), Adoption: Adoption(rng.IntN(4)), Orphan: coin(10), DeletionUnclear: coin(3)},
		Identity: Identity(rng.IntN(4)), Creation: Creation(rng.IntN(7)), UniqueNames: coin(50), SinceCreate: time.Duration(rng.IntN(20)) * time.Second, SinceMet: time.Duration(rng.IntN(20)) * time.Second, SinceDelete: time.Duration(rng.IntN(20)) * time.Minute, Grace: 10 * time.Second,
		Found: Found(rng.IntN(4)), Fresh: coin(70), DeleteAccepted: coin(20), SameUpdates: rng.IntN(5), FutileMarks: rng.IntN(5), SinceMark: time.Duration(rng.IntN(20)) * time.Second, NewSpec: coin(20),
		Uncompleted: coin(10), Finishes: coin(10), Unpublished: coin(20), Incomplete: coin(5), Unprepared: coin(20), CanMark: coin(50), CanUnmark: coin(50),
		Differs: Differs{InPlace: coin(30), Recreate: coin(15), Unsupported: coin(10)},
		Did:     Did{Create: coin(15), Update: coin(15), Delete: coin(15), Cancel: coin(15), Mark: coin(15), Unmark: coin(15)},
		Record:  RecordFacts{KnownID: coin(70), Incarnation: int64(rng.IntN(3)), Marker: record.Recorded(rng.IntN(3)), Expired: coin(30), Doubtful: coin(10)},
	}
	if coin(5) {
		f.Paused = Pause(rng.IntN(3))
	}
	if coin(5) {
		f.Scope = Scope(rng.IntN(3))
	}
	if coin(8) {
		f.Dependencies, f.SinceUnready = DependenciesUnready, time.Duration(rng.IntN(20))*time.Second
	}
	if coin(8) {
		f.Spent = coin(30)
		f.SinceLost, f.LostGrace = time.Duration(rng.IntN(20))*time.Minute, 10*time.Minute
		f.Op = Op{Blocks: coin(30), State: OpState(rng.IntN(3)), Of: []Action{ActionCreate, ActionUpdate, ActionDelete}[rng.IntN(3)], Polled: coin(50), Cancellable: coin(50)}
	}
	if coin(5) {
		f.Record.Trouble = Trouble(rng.IntN(6))
	}
	if coin(5) {
		f.Publish = Answer{Of: ActionPublish, Failed: true, Class: Class(rng.IntN(9))}
	}
	if coin(8) {
		f.Approval = Approval(rng.IntN(3))
	}
	if coin(8) {
		f.Refused = calls[1+rng.IntN(4)]
	}
	if coin(70) {
		f.Seen = Seen{Observed: true, Phase: phases[rng.IntN(len(phases))], Recoverable: coin(50)}
		if coin(30) {
			f.Seen.Source, f.Unconfirmed = Source(rng.IntN(3)), coin(30)
		}
		if f.Seen.Phase != PhaseMissing {
			f.Seen.Owner, f.Seen.Rival = Owner(rng.IntN(8)), Rival(max(0, rng.IntN(12)-9))
		}
	}
	if coin(20) {
		f.Last = Answer{Of: calls[rng.IntN(len(calls))], Failed: true, Class: Class(rng.IntN(9)), Timeout: coin(10)}
	}
	return f
}

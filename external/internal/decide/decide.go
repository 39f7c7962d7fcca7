package decide

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// Next says what to do next about one external thing. It is pure and total: it knows
// nothing but f, and every f has an answer. Its 32 rows are the framework's promise; each
// Decision names the row that made it. The caller acts, learns new facts and asks again,
// until an answer leaves nothing to do in this pass.
//
// Invariants, whatever f and however the caller crashes between two answers:
//   - a thing is created only when its absence is proven and a marker is durable and young,
//     so that the age of a marker tells when no create can still be on its way;
//   - nothing that is not ours is changed or deleted;
//   - the finalizer goes only when the thing is absent or is to stay by policy.
func Next(f Facts) Decision {
	d := decide(f)
	if !f.suffice(d) {
		f.Seen, f.Differs = Seen{}, Differs{}
		d = decide(f)
	}
	return certain(f, d)
}

func decide(f Facts) Decision {
	if f.Deleting {
		return decideDeletion(f)
	}
	return decideLife(f)
}

// suffice reports whether d may rest on what is known of the resource; if not, d is decided as if
// nothing were. What the API returned a moment ago is enough to make a change that the user asks
// for now, which costs one read less; it is not enough to say that nothing differs, or that the
// resource is gone or not ours. What the API returns with its answer is believed once: if the same
// differences come back, it may only repeat what was asked for.
func (f Facts) suffice(d Decision) bool {
	switch f.Seen.Source {
	case SourceMemory:
		return d.Action == ActionUpdate || d.Action == ActionDelete && f.Deleting
	case SourceAnswer:
		return !f.Unconfirmed
	case SourceRead:
	}
	return true
}

// certain makes sure, before the outside is changed, that the object which was read still
// exists. A process that has just started may read an old copy of one that is gone, whose
// name or thing belongs to somebody else by now; or one whose record was taken off, and put
// back since.
func certain(f Facts, d Decision) Decision {
	blind := d.Action == ActionRemoveFinalizer && d.Row == 27 && f.Record.Marker == record.MarkerNone
	if (d.Action.Mutates() || blind) && !f.Fresh {
		d.Action = ActionConfirm
	}
	return d
}

// NotConvergingAfter is after how many accepted changes that left the same difference row
// 20 stops.
const NotConvergingAfter = 3

// Decision is what to do next, and what to show while it is so.
type Decision struct {
	// Row is the row of the table that decided.
	Row Row
	// Action is what to do.
	Action Action
	// Incarnation is the one to write a marker for, with ActionWriteMarker.
	Incarnation int64
	// State is the word for people. Empty leaves the one that is shown.
	State State
	// Reason explains it in one CamelCase word.
	Reason Reason
	// Show is what conditions say.
	Show Show
	// Wake is what brings the object back when the action leaves nothing to do.
	Wake Wake
}

// Row is a row of the decision table, 1 to 32. Row 0 is the look that comes before any.
type Row int

// String is the row as traces show it: "D-13".
func (r Row) String() string {
	text := [...]byte{'D', '-', byte('0' + r/10%10), byte('0' + r%10)}
	return string(text[:])
}

// Action is what to do next. The set is closed.
type Action int

const (
	// ActionNone: this pass has nothing left to do.
	ActionNone Action = iota
	// ActionObserve: look at the thing.
	ActionObserve
	// ActionWriteMarker: make durable that a create may be called, on top of the very
	// version of the object that was read.
	ActionWriteMarker
	// ActionCreate, ActionUpdate, ActionDelete, ActionPoll and ActionCancel call the API.
	ActionCreate
	ActionUpdate
	ActionDelete
	ActionPoll
	ActionCancel
	// ActionFindOwned: search by mark.
	ActionFindOwned
	// ActionAdopt: make durable that the thing seen is ours.
	ActionAdopt
	// ActionPublish: bring outputs for other objects up to date.
	ActionPublish
	// ActionPrepareDelete: let the driver do what must come before a deletion.
	ActionPrepareDelete
	// ActionMark: put our mark on a thing that is ours and exists.
	ActionMark
	// ActionUnmark: take our mark off the thing.
	ActionUnmark
	// ActionRemoveFinalizer: let the object go.
	ActionRemoveFinalizer
	// ActionConfirm: read the object from the API server itself and go on only if it is
	// the one at hand.
	ActionConfirm
	// ActionStop: nothing until somebody changes something; it needs a person.
	ActionStop
)

// String is the action in one or two words.
func (a Action) String() string {
	names := [...]string{
		"wait", "observe", "write marker", "create", "update", "delete", "poll", "cancel",
		"find owned", "adopt", "publish", "prepare delete", "mark", "unmark", "remove finalizer", "confirm",
		"stop",
	}
	if a < 0 || int(a) >= len(names) {
		return fmt.Sprintf("Action(%d)", int(a))
	}
	return names[a]
}

// Final tells whether an action ends the pass.
func (a Action) Final() bool {
	return a == ActionNone || a == ActionStop || a == ActionRemoveFinalizer
}

// State is the word that status.state shows: the nine names of the state machine.
type State string

// The nine states.
const (
	StatePending     State = "Pending"
	StateCreating    State = "Creating"
	StateUpdating    State = "Updating"
	StateVerifying   State = "Verifying"
	StateCompleting  State = "Completing"
	StateSucceeded   State = "Succeeded"
	StateRecreating  State = "Recreating"
	StateFailed      State = "Failed"
	StateTerminating State = "Terminating"
)

// Reason explains a decision in one word, for conditions.
type Reason string

// The reasons that decisions give. Those of failed calls are made of the call and what its
// error means: CreateFailed, UpdateDenied, DeleteConflict.
const (
	ReasonAvailable            Reason = "Available"
	ReasonObserving            Reason = "Observing"
	ReasonPaused               Reason = "Paused"
	ReasonConnectFailed        Reason = "ConnectFailed"
	ReasonThrottled            Reason = "Throttled"
	ReasonUnreachable          Reason = "Unreachable"
	ReasonCallHangs            Reason = "CallHangs"
	ReasonDependenciesNotReady Reason = "DependenciesNotReady"
	ReasonNotReady             Reason = "NotReady"
	ReasonCreating             Reason = "Creating"
	ReasonUpdating             Reason = "Updating"
	ReasonDeleting             Reason = "Deleting"
	ReasonRecreating           Reason = "Recreating"
	ReasonCompleting           Reason = "Completing"
	ReasonTimeout              Reason = "Timeout"
	ReasonDuplicate            Reason = "Duplicate"
	ReasonCreateUnknown        Reason = "CreateUnknown"
	ReasonRecordCorrupt        Reason = "RecordCorrupt"
	ReasonInvalidName          Reason = "InvalidName"
	ReasonRenamed              Reason = "Renamed"
	ReasonVerifying            Reason = "Verifying"
	ReasonCreateNotPermitted   Reason = "CreateNotPermitted"
	ReasonUpdateNotPermitted   Reason = "UpdateNotPermitted"
	ReasonRecreateNotPermitted Reason = "RecreateNotPermitted"
	ReasonApprovalRequired     Reason = "ApprovalRequired"
	ReasonRecreatedAfterLoss   Reason = "RecreatedAfterExternalDeletion"
	ReasonMissingAfterRestart  Reason = "MissingAfterRestart"
	ReasonCreateDoubtful       Reason = "CreateDoubtful"
	ReasonIDNotSupported       Reason = "IDNotSupported"
	ReasonNotOurs              Reason = "NotOurs"
	ReasonContested            Reason = "Contested"
	ReasonAdopting             Reason = "Adopting"
	ReasonEndpointChanged      Reason = "EndpointChanged"
	ReasonDegraded             Reason = "Degraded"
	ReasonNotConverging        Reason = "NotConverging"
	ReasonImmutable            Reason = "Immutable"
	ReasonExternalDeletion     Reason = "DeletedExternally"
	ReasonExternalFailed       Reason = "ExternalFailed"
	ReasonPolicyInvalid        Reason = "PolicyInvalid"
	ReasonOrphaned             Reason = "Orphaned"
	ReasonNeverCreated         Reason = "NeverCreated"
	ReasonAbsent               Reason = "Absent"
	ReasonReconcileFailed      Reason = "ReconcileFailed"
)

// Shown is what a condition says.
type Shown int

const (
	// ShowSame leaves the condition as it is.
	ShowSame Shown = iota
	// ShowTrue and ShowFalse set it. A condition that never was true is not shown as
	// false, but for Ready.
	ShowTrue
	ShowFalse
)

// Show is what the conditions say.
type Show struct {
	Ready, Creating, Updating, Deleting, Failed, DependenciesReady, Paused Shown
}

// Wake is what brings an object back.
type Wake int

const (
	// WakeNow: ask again with what the action taught.
	WakeNow Wake = iota
	// WakeEvent: somebody changes the object; or the drift interval.
	WakeEvent
	// WakeBackoff: an exponential delay, 1 s to 10 min.
	WakeBackoff
	// WakePoll: what the API hints at, or 1 s growing to 30 s.
	WakePoll
	// WakeSoon: 1 s growing to 10 s.
	WakeSoon
	// WakeDrift: the drift interval.
	WakeDrift
	// WakeScope: when the scope opens again.
	WakeScope
	// WakeDependency: a dependency changes.
	WakeDependency
	// WakeGrace: what the API shows is no longer behind what became of a dependency.
	WakeGrace
)

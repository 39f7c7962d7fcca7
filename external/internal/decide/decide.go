package decide

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// Next returns what to do next about one external resource. It is pure and total: it depends on f
// alone and has an answer for every f. The 32 rows of its table are the framework's promise; each
// Decision names the row that made it. The caller acts, learns new facts and asks again until a
// decision leaves nothing to do in this pass.
//
// These invariants hold for every f, wherever the caller crashes between two decisions:
//   - a resource is created only when its absence is proven and its marker is durable and recent,
//     so that the marker's age shows when no create can still be in flight;
//   - nothing that is not ours is changed or deleted;
//   - the finalizer is removed only when the resource is absent or the policy keeps it.
func Next(f Facts) Decision {
	d := decide(f)
	if !f.suffice(d) {
		f.Seen, f.Differs = Seen{}, Differs{}
		d = decide(f)
	}
	return confirmFirst(f, d)
}

func decide(f Facts) Decision {
	if f.Deleting {
		return decideDeletion(f)
	}
	return decideLife(f)
}

// suffice reports whether the state known of the resource is good enough for d; if it is not, Next
// decides as if the resource had not been observed. What the API returned a moment ago is enough
// to make a change that the user asks for now, which saves a read. It is not enough to conclude
// that nothing differs, or that the resource is gone or not ours. What the API returns with the
// answer to a change is believed once: if the same differences come back, the answer may only echo
// the request.
func (f Facts) suffice(d Decision) bool {
	switch f.Seen.Source {
	case SourceMemory:
		return d.Action == ActionUpdate || d.Action == ActionDelete && f.Deleting
	case SourceAnswer:
		return !f.Unconfirmed && (f.Seen.Phase == PhaseMissing || f.Seen.Ours() && f.Seen.Phase != PhaseFailed && f.Seen.Phase != PhaseDeleting)
	case SourceRead:
	}
	return true
}

// confirmFirst makes sure, before the external resource is changed, that the object still exists as it
// was read. A process that has just started may read a stale copy of a deleted object, whose name
// or resource belongs to another by now, or of one whose record was removed and restored since.
func confirmFirst(f Facts, d Decision) Decision {
	blind := d.Action == ActionRemoveFinalizer && d.Row == 27 && f.Record.Marker == record.MarkerNone
	if (d.Action.Mutates() || blind) && !f.Fresh {
		d.Action = ActionConfirm
	}
	return d
}

// NotConvergingAfter is the number of accepted changes that leave the same difference after which
// row 20 stops.
const NotConvergingAfter = 3

// Decision is what to do next, and what to report meanwhile.
type Decision struct {
	// Row is the row of the table that decided.
	Row Row
	// Action is what to do.
	Action Action
	// Incarnation is the one to write a marker for, with ActionWriteMarker.
	Incarnation int64
	// State is the state to report. Empty keeps the current one.
	State State
	// Reason explains it in one CamelCase word.
	Reason Reason
	// Show is what conditions say.
	Show Show
	// Wake is what triggers the next pass if the action leaves nothing to do.
	Wake Wake
}

// Row is a row of the decision table, 1 to 32. Row 0 is the observation that precedes them all.
type Row int

// String is the row as traces show it: "D-13".
func (r Row) String() string {
	text := [...]byte{'D', '-', byte('0' + r/10%10), byte('0' + r%10)}
	return string(text[:])
}

// Action is what to do next. The set is closed.
type Action uint8

const (
	// ActionNone means that this pass has nothing left to do.
	ActionNone Action = iota
	// ActionObserve observes the resource.
	ActionObserve
	// ActionWriteMarker makes durable that a create may be called, with a write that fails unless
	// the object is still at the version that was read.
	ActionWriteMarker
	// ActionCreate, ActionUpdate, ActionDelete, ActionPoll and ActionCancel call the API.
	ActionCreate
	ActionUpdate
	ActionDelete
	ActionPoll
	ActionCancel
	// ActionFindOwned searches by mark.
	ActionFindOwned
	// ActionAdopt makes durable that the observed resource is ours.
	ActionAdopt
	// ActionPublish brings the connection details that users see up to date.
	ActionPublish
	// ActionComplete writes to the spec what the API has chosen.
	ActionComplete
	// ActionFinish lets the driver do in the cluster what follows from a resource that matches the spec.
	ActionFinish
	// ActionPrepareDelete lets the driver do what must precede a deletion.
	ActionPrepareDelete
	// ActionMark puts our mark on an existing resource that is ours.
	ActionMark
	// ActionUnmark removes our mark from the resource.
	ActionUnmark
	// ActionRemoveFinalizer removes the finalizer from the object.
	ActionRemoveFinalizer
	// ActionConfirm reads the object from the API server itself; the pass goes on only if it is
	// the same object.
	ActionConfirm
	// ActionStop does nothing until something changes; a user has to act.
	ActionStop
)

// String returns the action in one or two words.
func (a Action) String() string {
	names := [...]string{
		"wait", "observe", "write marker", "create", "update", "delete", "poll", "cancel",
		"find owned", "adopt", "publish", "complete spec", "finish", "prepare delete", "mark", "unmark", "remove finalizer", "confirm",
		"stop",
	}
	if int(a) >= len(names) {
		return fmt.Sprintf("Action(%d)", int(a))
	}
	return names[a]
}

// Final reports whether an action ends the pass.
func (a Action) Final() bool {
	return a == ActionNone || a == ActionStop || a == ActionRemoveFinalizer
}

// State is one of the nine states of the state machine, as shown in status.state.
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

// The reasons that decisions give. The reason of a failed call joins the call and the class of its
// error: CreateFailed, UpdateDenied, DeleteConflict.
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
	ReasonUndeclaredID         Reason = "UndeclaredID"
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
	ReasonConnectionLost       Reason = "ConnectionLost"
)

// Shown is what a decision does to a condition.
type Shown uint8

const (
	// ShowSame leaves the condition as it is.
	ShowSame Shown = iota
	// ShowTrue and ShowFalse set it. A condition that was never true is not shown as false, except
	// for Ready.
	ShowTrue
	ShowFalse
)

// Show is what the conditions say.
type Show struct {
	Ready, Creating, Updating, Deleting, Failed, DependenciesReady, Paused Shown
}

// Wake is what triggers the next pass over an object.
type Wake uint8

const (
	// WakeNow decides again with the facts that the action produced.
	WakeNow Wake = iota
	// WakeEvent waits for a change of the object, or for the drift interval.
	WakeEvent
	// WakeBackoff waits for an exponential back-off, 1 s to 10 min.
	WakeBackoff
	// WakePoll waits as long as the API suggests, or 1 s growing to 30 s.
	WakePoll
	// WakeSoon waits 1 s, growing to 10 s.
	WakeSoon
	// WakeDrift waits for the drift interval.
	WakeDrift
	// WakeScope waits until the scope opens again.
	WakeScope
	// WakeDependency waits for a dependency to change.
	WakeDependency
	// WakeGrace waits until the API's reads certainly reflect what became of a dependency.
	WakeGrace
)

package decide

import (
	"cmp"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// decideLife decides for an object that is not being deleted.
func decideLife(f Facts) Decision {
	if f.Paused != PauseNone {
		return decidePaused(f)
	}
	if f.Record.Trouble != TroubleNone {
		return decideTrouble(f)
	}
	if d, stop := decideScope(f); stop {
		return d
	}
	if f.Dependencies == DependenciesUnready {
		return decideUnready(f)
	}
	if f.Last.Failed && (f.Last.Of != ActionPoll || !f.cancels()) {
		return decideFailedCall(f)
	}
	if f.Op.State != OpNone {
		return decideOp(f)
	}
	if !f.Record.KnownID {
		return decideUnknownID(f)
	}
	if !f.Seen.Observed {
		return observe(f)
	}
	if f.Seen.Phase == PhaseMissing {
		return decideMissing(f)
	}
	return decideExisting(f)
}

// observe is the observation that precedes every decision about the resource itself.
func observe(f Facts) Decision {
	d := Decision{Action: ActionObserve, Reason: ReasonObserving}
	if f.Record.Marker == record.MarkerPending && f.Uncertain() {
		d.Row, d.State = 8, StateCreating
	}
	return d
}

// Uncertain reports whether a create may have happened that was not seen to succeed.
func (f Facts) Uncertain() bool {
	return f.Creation == CreationPossible || f.Creation == CreationSettled || f.Creation == CreationCalled
}

// decidePaused is row 1: change nothing, but observe and report.
func decidePaused(f Facts) Decision {
	d := Decision{Row: 1, Reason: ReasonPaused, Wake: WakeDrift, Show: Show{Paused: ShowTrue}}
	if f.Record.Trouble != TroubleNone || !f.Record.KnownID {
		return d
	}
	if f.Scope != ScopeOpen || f.Last.Failed { // not a failure, but the state of the resource is unknown
		d.Wake = WakePoll
		return d
	}
	if !f.Seen.Observed {
		d.Action = ActionObserve
		return d
	}
	d.Show.Ready = readiness(f)
	return d
}

// readiness is what Ready says of an observed resource that is left alone.
func readiness(f Facts) Shown {
	if f.Seen.Phase == PhaseAvailable && f.Seen.Ours() {
		return ShowTrue
	}
	return ShowFalse
}

// decideTrouble decides for a record or a name that cannot be used: nothing is done.
func decideTrouble(f Facts) Decision {
	switch f.Record.Trouble {
	case TroubleName:
		return stopped(23, ReasonInvalidName)
	case TroubleRenamed:
		return stopped(23, ReasonRenamed)
	case TroubleEndpoint:
		return stopped(10, ReasonEndpointChanged)
	case TroubleGiven:
		return stopped(10, ReasonUndeclaredID)
	case TroubleCorrupt, TroubleNone:
	}
	return stopped(10, ReasonRecordCorrupt)
}

// decideScope is rows 2 and 3.
func decideScope(f Facts) (d Decision, stop bool) {
	switch f.Scope {
	case ScopeUnconnectable:
		return Decision{
			Row: 2, State: StatePending, Reason: ReasonConnectFailed, Wake: WakeBackoff,
			Show: Show{Failed: ShowTrue},
		}, true
	case ScopeThrottled:
		return Decision{Row: 3, Reason: ReasonThrottled, Wake: WakeScope}, true
	case ScopeDown:
		return unavailable(f.unreachable(), WakeScope), true
	case ScopeOccupied:
		return unavailable(ReasonCallHangs, WakeBackoff), true
	case ScopeOpen:
	}
	return Decision{}, false
}

// unreachable is the reason to report while the API is down and not called. An object whose own
// observation failed keeps that reason; otherwise its status would change with every try.
func (f Facts) unreachable() Reason { return cmp.Or(f.LastReport.ObserveFailure, ReasonUnreachable) }

// unavailable is row 2 for an API that cannot be called for this object now.
func unavailable(reason Reason, wake Wake) Decision {
	return Decision{Row: 2, State: StateFailed, Reason: reason, Wake: wake, Show: Show{Failed: ShowTrue}}
}

// decideUnready is rows 4 and 5: a dependency is absent or not ready. Neither that nor an error
// meanwhile is a failure, but a failed observation is retried. A resource that was already created
// is only observed.
func decideUnready(f Facts) Decision {
	d := Decision{
		Row: 5, State: StatePending, Reason: ReasonDependenciesNotReady, Wake: WakeDependency,
		Show: Show{DependenciesReady: ShowFalse, Failed: ShowFalse, Creating: ShowFalse, Updating: ShowFalse},
	}
	made := f.Creation > CreationUnrecorded && f.Record.KnownID
	missing := f.Seen.Observed && f.Seen.Phase == PhaseMissing
	switch {
	case !made || missing:
		d.Row, d.Show.Ready = 4, ShowFalse
	case f.Last.Failed:
		d.Wake = WakePoll
	case !f.Seen.Observed:
		d.Action = ActionObserve
	default:
		d.Show.Ready = readiness(f)
		if f.SinceUnready < f.Grace { // the API may still show what was deleted with the dependency
			d.Wake = WakeGrace
		}
	}
	return d
}

// decideOp is rows 6 and 7: an operation is running. Nothing else is called until it ends, but to cancel it.
func decideOp(f Facts) Decision {
	d := inProgress(f.Op.Of)
	if f.Op.State == OpOverdue {
		d.Row, d.State, d.Reason, d.Wake = 7, StateFailed, ReasonTimeout, WakePoll
		d.Show.Failed = ShowTrue
	}
	switch {
	case !f.Op.Polled:
		d.Action = ActionPoll
	case f.Publish.Failed:
		return leftUndone(f, f.Publish)
	case f.cancels():
		d.Action = ActionCancel
	}
	return d
}

// cancels reports whether the operation is to be canceled, also if it cannot be followed: nobody wants it any more, or it takes
// too long. A deletion is always wanted.
func (f Facts) cancels() bool {
	unwanted := f.Op.State == OpOverdue || f.Op.State == OpRunning && f.Deleting
	return unwanted && f.Op.Of != ActionDelete && f.Op.Cancellable && !f.Did.Cancel && !f.Publish.Failed
}

// inProgress is row 6 for an operation that a call of kind a started.
func inProgress(a Action) Decision {
	d := Decision{
		Row: 6, State: StateCreating, Reason: ReasonCreating, Wake: WakePoll,
		Show: Show{Ready: ShowFalse, Creating: ShowTrue, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	switch a {
	case ActionUpdate:
		d.State, d.Reason = StateUpdating, ReasonUpdating
		d.Show.Creating, d.Show.Updating = ShowFalse, ShowTrue
	case ActionDelete:
		d.State, d.Reason = StateRecreating, ReasonRecreating
		d.Show.Creating, d.Show.Updating = ShowFalse, ShowTrue
	default:
	}
	return d
}

// decideUnknownID decides for a resource whose identity is unknown, so that it cannot be observed.
func decideUnknownID(f Facts) Decision {
	searches := f.Identity == IdentityMark && f.Creation == CreationUnrecorded // an earlier record may be lost
	failed := f.Spent && f.Identity != IdentityMark                            // so there is nothing that a token could return
	if f.Record.Marker == record.MarkerNone || !f.Uncertain() && !searches || failed {
		return decideMissing(f)
	}
	return decideLost(f)
}

// decideLost is rows 8, 9 and 10: a create was called and its answer was lost. Deletion uses it
// too.
func decideLost(f Facts) Decision {
	d := Decision{Row: 8, State: StateCreating, Reason: ReasonVerifying, Show: Show{Creating: ShowTrue, Ready: ShowFalse}}
	switch f.Identity {
	case IdentityDeterministic, IdentityToken:
		return reissue(f, d)
	case IdentityMark:
		return decideFound(f, d)
	case IdentityNone:
	}
	return stopped(10, ReasonCreateUnknown)
}

// reissue repeats a create with the same token, which returns the resource that the first one
// made.
func reissue(f Facts, d Decision) Decision {
	switch {
	case f.Did.Create:
		d.Wake = WakeSoon
		return d
	case f.Record.Marker == record.MarkerNone, f.Spent:
		return stopped(10, ReasonCreateUnknown)
	case !f.Policy.Create:
		return stopped(12, ReasonCreateNotPermitted)
	}
	d.Action = ActionCreate
	if f.Record.Expired {
		d.Action, d.Incarnation = ActionWriteMarker, f.Record.Incarnation
	}
	return d
}

// decideFound is row 9: search by mark, and decide by the number of results.
func decideFound(f Facts, d Decision) Decision {
	d.Row = 9
	switch f.Found {
	case FoundNotAsked:
		d.Action = ActionFindOwned
		return d
	case FoundOne:
		d.Action = ActionAdopt
		return d
	case FoundMany:
		return stopped(9, ReasonDuplicate)
	case FoundNothing:
	}
	return decideMissing(f)
}

// decideMissing is rows 11 to 14: the resource does not exist.
func decideMissing(f Facts) Decision {
	lost := f.Creation == CreationSeen || f.Creation == CreationSettled || f.Record.Marker == record.MarkerDone || f.assigned()
	d := Decision{
		Row: 13, State: StateCreating, Reason: ReasonCreating,
		Show: Show{Ready: ShowFalse, Creating: ShowTrue, Updating: ShowFalse, DependenciesReady: ShowTrue},
	}
	switch {
	case f.Create.Failed && !f.maybeTakenByUs():
		return failedCall(f.Create)
	case f.Publish.Failed:
		return leftUndone(f, f.Publish)
	case !f.absenceProven():
		d = unseen()
		if f.Creation == CreationPossible { // the answer to the last create still stands
			d.Show.Failed = ShowSame
		}
		return d
	case !f.Policy.Create:
		d = stopped(12, ReasonCreateNotPermitted)
		d.Wake = WakeDrift
		return d
	case f.Refused == ActionCreate:
		return refused(f, ActionCreate)
	case f.Seen.Rival != RivalNone:
		return notOurs(f)
	case lost && !f.DeleteAccepted:
		d.Row, d.Reason = 14, ReasonRecreatedAfterLoss
		if f.Creation == CreationSettled && f.Record.Marker != record.MarkerDone {
			d.Reason = ReasonMissingAfterRestart
		}
		if f.Approval == ApprovalMissing {
			return stopped(14, ReasonApprovalRequired)
		}
	case lost:
		d.State, d.Reason = StateRecreating, ReasonRecreating
	}
	return markThenCreate(f, d, lost)
}

// assigned reports whether the API has assigned the identity of the resource, so that its create has succeeded: the token of
// that create returns this resource for ever.
func (f Facts) assigned() bool {
	return f.Identity != IdentityDeterministic && f.Record.KnownID && !f.Spent
}

// unseen is row 11: what this process has just created is not visible yet.
func unseen() Decision {
	return Decision{
		Row: 11, State: StateVerifying, Reason: ReasonVerifying, Wake: WakeSoon,
		Show: Show{Ready: ShowFalse, Creating: ShowTrue, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
}

// createdRecently reports whether this process created the resource so recently that the API may
// still show the state before the create.
func (f Facts) createdRecently() bool {
	return f.SinceCreate < f.Grace && (f.Creation == CreationCalled || f.Creation == CreationSeen)
}

// maybeTakenByUs reports whether a create was refused because the name is taken, possibly by an earlier
// create that the API does not show yet.
func (f Facts) maybeTakenByUs() bool {
	return f.Create.Class == ClassConflict && !f.Create.Late && f.Creation == CreationPossible && f.SinceCreate < f.Grace
}

// markThenCreate creates the resource, after writing the marker unless a recent one is durable
// already. A new incarnation needs its own marker. So does a repeated create of a resource that is
// found by its mark, or is marked later: a stale observation could show the result of an earlier
// create and take it for this one's. After an operation that failed, its token is used up.
func markThenCreate(f Facts, d Decision, lost bool) Decision {
	d.Action, d.Incarnation = ActionCreate, f.Record.Incarnation
	again := (f.Identity == IdentityMark || f.MarkLater) && f.Uncertain()
	switch {
	case f.Record.Marker == record.MarkerNone || lost || again || f.Spent:
		d.Action, d.Incarnation = ActionWriteMarker, f.Record.Incarnation+1
	case f.Record.Expired:
		d.Action = ActionWriteMarker
	}
	return d
}

// absenceProven reports whether the resource does not exist, given that it was not seen. It may
// become visible late after a create, unless the API has accepted its deletion since. Where a
// second create of the same name makes no second resource, there is no reason to wait for one that
// may have happened, unless only the order of the creates shows later who owns a resource without
// a mark.
func (f Facts) absenceProven() bool {
	if f.Did.Create {
		return false
	}
	recent := f.SinceCreate < f.Grace
	switch f.Creation {
	case CreationSettled:
		return !f.maybeHidden() || f.UniqueNames && !f.MarkLater
	case CreationNone, CreationRefused, CreationUnrecorded:
		return true
	case CreationPossible:
		return !recent && !f.maybeHidden() || f.UniqueNames && !f.MarkLater
	case CreationCalled:
		return !recent
	case CreationSeen:
		return f.DeleteAccepted || !recent
	}
	return false
}

// maybeHidden reports whether a create whose answer was lost may go on in an operation of which nothing can be seen.
func (f Facts) maybeHidden() bool { return f.SinceLost < f.LostGrace }

// decideExisting is rows 15 and 24 and the rows that depend on the resource's phase.
func decideExisting(f Facts) Decision {
	switch c := claimed(f); {
	case c != claimOurs && f.createdRecently(), c == claimAdopt && f.Uncertain() && f.SinceCreate < f.Grace:
		return unseen()
	case c == claimRefused:
		return observeAgain(f, notOurs(f))
	case f.madeUnmarked() && f.Seen.Owner == OwnerUs && f.Seen.Marked:
		return Decision{Row: 9, Action: ActionAdopt, State: StateCreating, Reason: ReasonCreating}
	case c == claimAdopt:
		return Decision{Row: 9, Action: ActionAdopt, State: StateVerifying, Reason: ReasonVerifying}
	case f.unproven():
		return decideMark(f)
	}
	switch f.Seen.Phase {
	case PhaseCreating:
		return inProgress(ActionCreate)
	case PhaseUpdating:
		return inProgress(ActionUpdate)
	case PhaseInProgress:
		return decideInProgress(f)
	case PhaseDeleting:
		return decideVanishing(f)
	case PhaseFailed:
		return decideFailedResource(f)
	case PhaseAvailable, PhaseDegraded, PhaseMissing:
	}
	return decideChanges(f)
}

// decideVanishing is row 24: the resource is being deleted although its object is not.
func decideVanishing(f Facts) Decision {
	d := Decision{
		Row: 24, State: StateVerifying, Reason: ReasonExternalDeletion, Wake: WakePoll,
		Show: Show{Ready: ShowFalse, Creating: ShowFalse, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	if f.DeleteAccepted {
		d.State, d.Reason, d.Show.Updating = StateRecreating, ReasonRecreating, ShowTrue
	}
	return d
}

// decideFailedResource is the first half of row 25: the external system reports that the resource
// failed. A difference may be the cause, so a change is tried if that can help.
func decideFailedResource(f Facts) Decision {
	if f.Differs.Any() && (f.Seen.Recoverable || f.NewSpec) {
		d := decideChanges(f)
		d.Show.Failed = ShowTrue
		if d.Action == ActionNone {
			d.Wake = WakeBackoff
		}
		return d
	}
	d := stopped(25, ReasonExternalFailed)
	if f.Seen.Recoverable {
		d.Action, d.Wake = ActionNone, WakeBackoff
	}
	return d
}

// decideChanges is rows 16 to 23: the resource exists, is ours and can be changed.
func decideChanges(f Facts) Decision {
	switch {
	case f.Unpublished && !f.Publish.Failed:
		return publish(f)
	case f.Differs.Unsupported:
		return keepReady(f, stopped(23, ReasonImmutable))
	case f.Differs.Recreate:
		return decideRecreate(f)
	case f.Differs.InPlace:
		return decideUpdate(f)
	}
	return decideInSync(f)
}

// decideUpdate is rows 18, 19 and 20.
func decideUpdate(f Facts) Decision {
	switch {
	case !f.Policy.Update:
		d := keepReady(f, stopped(19, ReasonUpdateNotPermitted))
		d.Wake = WakeDrift
		return d
	case f.SameUpdates >= NotConvergingAfter:
		return keepReady(f, stopped(20, ReasonNotConverging))
	case f.Refused == ActionUpdate:
		return keepReady(f, refused(f, ActionUpdate))
	}
	d := Decision{
		Row: 18, Action: ActionUpdate, State: StateUpdating, Reason: ReasonUpdating,
		Show: Show{Ready: readiness(f), Creating: ShowFalse, Updating: ShowTrue, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	if f.Did.Update {
		d.Action, d.Wake = ActionNone, WakeSoon
	}
	return d
}

// decideRecreate is rows 21 and 22: nothing is deleted that must not be created again.
func decideRecreate(f Facts) Decision {
	switch {
	case !f.Policy.Delete || !f.Policy.Create:
		d := keepReady(f, stopped(22, ReasonRecreateNotPermitted))
		d.Wake = WakeDrift
		return d
	case f.Approval == ApprovalMissing:
		return keepReady(f, stopped(22, ReasonApprovalRequired))
	case f.SameUpdates >= NotConvergingAfter, f.FutileDeletes >= NotConvergingAfter:
		return keepReady(f, stopped(20, ReasonNotConverging))
	case f.Refused == ActionDelete:
		return keepReady(f, refused(f, ActionDelete))
	}
	d := Decision{
		Row: 21, Action: ActionDelete, State: StateRecreating, Reason: ReasonRecreating,
		Show: Show{Ready: ShowFalse, Creating: ShowFalse, Updating: ShowTrue, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	switch {
	case f.Did.Delete:
		d.Action, d.Wake = ActionNone, WakePoll
	case f.Unprepared:
		d.Action = ActionPrepareDelete
	}
	return d
}

// keepReady sets Ready for a resource that differs from the spec but may work.
func keepReady(f Facts, d Decision) Decision {
	d.Show.Ready = readiness(f)
	return d
}

// stopped is a state that only a user, or a change, ends.
func stopped(row Row, reason Reason) Decision {
	return Decision{
		Row: row, Action: ActionStop, State: StateFailed, Reason: reason, Wake: WakeEvent,
		Show: Show{Ready: ShowFalse, Creating: ShowFalse, Updating: ShowFalse, Failed: ShowTrue},
	}
}

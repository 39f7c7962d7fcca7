package decide

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// decideDeletion decides for an object that is being deleted. Only rows 26, 27 and 30 remove the
// finalizer; in doubt it stays.
func decideDeletion(f Facts) Decision {
	switch {
	case f.Paused == PauseAll:
		d := Terminating(Decision{Row: 1, Reason: ReasonPaused, Wake: WakeEvent})
		d.Show.Paused = ShowTrue
		return d
	case f.Policy.DeletionUnclear:
		return keepFinalizer(31, ReasonPolicyInvalid)
	case f.Policy.Orphan || !f.Policy.Delete:
		return decideOrphan(f)
	case f.Record.Trouble == TroubleCorrupt:
		return keepFinalizer(28, ReasonRecordCorrupt)
	case f.Op.State == OpNone && neverCreated(f):
		return removeFinalizer(27, ReasonNeverCreated)
	}
	if f.Record.Trouble == TroubleEndpoint {
		return keepFinalizer(31, ReasonEndpointChanged)
	}
	if d, stop := decideDeletionScope(f); stop {
		return d
	}
	if f.Last.Failed && (f.Last.Of != ActionPoll || !f.cancels()) {
		return decideFailedDeletion(f)
	}
	if f.Op.State != OpNone && (f.Op.Of == ActionDelete || !f.Record.KnownID || f.Op.Blocks) {
		return decideDeletionOp(f)
	}
	if !f.Record.KnownID {
		return decideDeletionUnknownID(f)
	}
	if !f.Seen.Observed {
		d := observe(f)
		d.State = StateTerminating
		return d
	}
	return decideDeletionSeen(f)
}

// Terminating adds to d what every decision about a deletion reports.
func Terminating(d Decision) Decision {
	d.State = StateTerminating
	d.Show.Ready, d.Show.Creating, d.Show.Updating, d.Show.Deleting = ShowFalse, ShowFalse, ShowFalse, ShowTrue
	return d
}

// removeFinalizer removes the finalizer.
func removeFinalizer(row Row, reason Reason) Decision {
	return Terminating(Decision{Row: row, Action: ActionRemoveFinalizer, Reason: reason})
}

// keepFinalizer keeps the finalizer until something changes.
func keepFinalizer(row Row, reason Reason) Decision {
	d := Terminating(Decision{Row: row, Action: ActionStop, Reason: reason, Wake: WakeEvent})
	d.Show.Failed = ShowTrue
	return d
}

// unmarkWithin is for how long after its deletion an object that leaves its resource waits for a client that can remove the mark. A
// process that has just started may have none yet, and one whose connecting code hangs is restarted after ten minutes, when /livez
// fails; credentials that are gone for good must not hold back the object.
const unmarkWithin = 15 * time.Minute

// decideOrphan is row 26: the resource stays. Its mark is removed if the API allows that, so that
// others can adopt it; an API that refuses does not hold back the object.
func decideOrphan(f Facts) Decision {
	done := removeFinalizer(26, ReasonOrphaned)
	strip := f.Policy.Orphan && f.CanUnmark && f.Record.KnownID && (f.Scope != ScopeUnconnectable || f.SinceDelete < unmarkWithin) &&
		f.Record.Trouble != TroubleEndpoint && !neverCreated(f)
	switch {
	case !strip:
		return done
	case f.Scope != ScopeOpen:
		d, _ := decideDeletionScope(f)
		return d
	case f.Last.Failed && retriable(f.Last.Class):
		return deletionFailed(f)
	case f.Last.Failed || f.Did.Unmark:
		return done
	case !f.Seen.Observed:
		d := observe(f)
		d.Row, d.State = 26, StateTerminating
		return d
	case f.Seen.Phase != PhaseMissing && ownsForDeletion(f):
		done.Action = ActionUnmark
	}
	return done
}

// retriable reports whether a retry may overcome an error of class c.
func retriable(c Class) bool {
	switch c {
	case ClassUnknown, ClassTransient, ClassThrottled, ClassConflict, ClassAmbiguous, ClassNotReady:
		return true
	case ClassDenied, ClassInvalid, ClassTerminal:
	}
	return false
}

// neverCreated reports whether no create of any incarnation that may exist was ever called. A
// refused create counts as called: the API may have made the resource nevertheless.
func neverCreated(f Facts) bool {
	switch {
	case f.Record.Trouble == TroubleCorrupt:
		return false
	case !f.Record.KnownID && f.Creation == CreationUnrecorded && f.Identity != IdentityMark && f.Identity != IdentityDeterministic:
		return true // nothing could tell otherwise
	case f.Creation > CreationRefused:
		return false
	case !f.Record.KnownID:
		return true
	}
	return f.Record.Marker == record.MarkerPending && f.Creation == CreationNone
}

// decideDeletionScope is rows 2 and 3 for deletion.
func decideDeletionScope(f Facts) (d Decision, stop bool) {
	switch f.Scope {
	case ScopeUnconnectable:
		return deletionUnavailable(ReasonConnectFailed, WakeBackoff), true
	case ScopeThrottled:
		return Terminating(Decision{Row: 3, Reason: ReasonThrottled, Wake: WakeScope}), true
	case ScopeDown:
		return deletionUnavailable(f.unreachable(), WakeScope), true
	case ScopeOccupied:
		return deletionUnavailable(ReasonCallHangs, WakeBackoff), true
	case ScopeOpen:
	}
	return Decision{}, false
}

// deletionUnavailable is row 31 for an API that cannot be called for this object now.
func deletionUnavailable(reason Reason, wake Wake) Decision {
	d := Terminating(Decision{Row: 31, Reason: reason, Wake: wake})
	d.Show.Failed = ShowTrue
	return d
}

// decideFailedDeletion is rows 31 and 32. If the resource just cannot be deleted yet, that is not
// a failure.
func decideFailedDeletion(f Facts) Decision {
	if d, ok := decideUnclear(f); ok {
		return d
	}
	switch f.Last.Class {
	case ClassThrottled:
		return Terminating(Decision{Row: 3, Reason: ReasonThrottled, Wake: WakeScope})
	case ClassConflict, ClassNotReady:
		if f.Last.Of == ActionDelete {
			d := Terminating(Decision{Row: 29, Reason: failureReason(f.Last), Wake: WakePoll})
			if f.Last.Class == ClassNotReady {
				d.Reason = ReasonNotReady
			}
			d.Show.Failed = ShowFalse
			return d
		}
	case ClassUnknown, ClassTransient, ClassDenied, ClassInvalid, ClassTerminal, ClassAmbiguous:
	}
	return deletionFailed(f)
}

// deletionFailed is row 31.
func deletionFailed(f Facts) Decision {
	d := Terminating(Decision{Row: 31, Reason: failureReason(f.Last), Wake: WakeBackoff})
	if f.Last.follows() {
		d.Wake = WakePoll
	}
	d.Show.Failed = ShowTrue
	return d
}

// decideDeletionOp is rows 6 and 7 for an operation that deletes the resource, or that must end before it can be deleted.
func decideDeletionOp(f Facts) Decision {
	d := decideOp(f)
	failed := d.Show.Failed
	d = Terminating(d)
	d.Show.Failed = failed
	d.Show.DependenciesReady = ShowSame
	if d.Row == 6 {
		d.Reason = ReasonDeleting
	}
	return d
}

// decideDeletionUnknownID is row 28: a resource of unknown identity may have been created. Rows 8
// to 10 find it first; until then the finalizer stays.
func decideDeletionUnknownID(f Facts) Decision {
	d := decideLost(f)
	if d.Action == ActionStop {
		return keepFinalizer(28, d.Reason)
	}
	if f.Identity == IdentityMark && f.Found == FoundNothing {
		if f.SinceCreate >= f.Grace && !f.maybeHidden() {
			return removeFinalizer(30, ReasonAbsent)
		}
		return Terminating(Decision{Row: 28, Reason: ReasonVerifying, Wake: WakeSoon})
	}
	d.Row = 28
	return Terminating(d)
}

// decideDeletionSeen is rows 29 and 30.
func decideDeletionSeen(f Facts) Decision {
	missing := f.Seen.Phase == PhaseMissing
	switch {
	case f.Op.State != OpNone && (missing || !ownsForDeletion(f)): // it has yet to appear
		return decideDeletionOp(f)
	case f.givenUnseen() && (missing || f.Seen.Owner == OwnerNobody) && f.goneForGood():
		return keepUnseenID()
	case f.givenUnseen() && !missing && ownsForDeletion(f):
		return Terminating(Decision{Row: 28, Action: ActionAdopt, Reason: ReasonDeleting})
	case (missing || !ownsForDeletion(f)) && !f.goneForGood():
		return Terminating(Decision{Row: 11, Reason: ReasonVerifying, Wake: WakeSoon})
	case missing:
		return removeFinalizer(30, ReasonAbsent)
	case !ownsForDeletion(f) && f.Record.Doubtful && f.Seen.Owner == OwnerNobody:
		d := Terminating(Decision{Row: 28, Reason: ReasonCreateDoubtful, Wake: WakeBackoff})
		d.Show.Failed = ShowTrue
		return d
	case !ownsForDeletion(f):
		return removeFinalizer(30, ReasonNotOurs)
	}
	d := Terminating(Decision{Row: 29, Action: ActionDelete, Reason: ReasonDeleting, Wake: WakePoll})
	d.Show.Failed = ShowFalse
	switch {
	case f.Seen.Phase == PhaseDeleting || f.Did.Delete:
		d.Action = ActionNone
	case f.Unprepared:
		d.Action = ActionPrepareDelete
	}
	return d
}

// givenUnseen reports whether the API assigned the resource an identity by which no observation
// has shown it yet. Until one does, the resource is not deleted: a driver that reads by name would
// never see it, and the object would be removed while the resource stays.
func (f Facts) givenUnseen() bool {
	return f.Record.Trouble == TroubleGiven && f.Record.Marker != record.MarkerDone
}

// keepUnseenID keeps an object whose resource no observation shows by its identity, or whose
// ownership only the record states.
func keepUnseenID() Decision {
	d := Terminating(Decision{Row: 28, Reason: ReasonUndeclaredID, Wake: WakeBackoff})
	d.Show.Failed = ShowTrue
	return d
}

// goneForGood reports whether a missing resource can no longer appear as the result of one of our
// creates.
func (f Facts) goneForGood() bool {
	switch f.Creation {
	case CreationSettled:
		return !f.maybeHidden()
	case CreationNone, CreationRefused, CreationUnrecorded:
		return true
	case CreationSeen:
		return f.DeleteAccepted || f.SinceCreate >= f.Grace
	case CreationPossible:
		return f.SinceCreate >= f.Grace && !f.maybeHidden()
	case CreationCalled:
		return f.SinceCreate >= f.Grace
	}
	return false
}

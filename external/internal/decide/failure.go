package decide

// decideFailedCall decides after a failed call for an object that is not being deleted.
func decideFailedCall(f Facts) Decision {
	if d, ok := decideUnclear(f); ok {
		return d
	}
	switch {
	case f.Last.Of == ActionUpdate && f.Refused == ActionUpdate && isPermanent(f.Last.Class):
		return observe(f) // so that the report describes the resource as it is, now and after the next observation
	case f.Last.Of == ActionCreate && f.Last.Class == ClassConflict && f.Record.KnownID:
		return observe(f) // the resource that has the name may be ours
	}
	return failedCall(f.Last)
}

// isPermanent reports whether only a different request can succeed after an error of class c.
func isPermanent(c Class) bool { return c == ClassInvalid || c == ClassTerminal }

// failedCall is the decision after an error that leaves nothing to find out.
func failedCall(a Answer) Decision {
	d := Decision{Row: 25, State: StateFailed, Reason: failureReason(a), Wake: WakeBackoff}
	d.Show = failedShow(a.Of)
	if a.follows() && a.Class != ClassThrottled { // however it fails, the operation ends by itself
		d.Wake = WakePoll
		return d
	}
	switch a.Class {
	case ClassInvalid, ClassTerminal:
		d.Action, d.Wake = ActionStop, WakeEvent
	case ClassNotReady:
		d.Row, d.State, d.Reason, d.Wake = 4, StatePending, ReasonNotReady, WakePoll
		d.Show.Failed = ShowFalse
	case ClassThrottled:
		d = Decision{Row: 3, Reason: ReasonThrottled, Wake: WakeScope}
	case ClassUnknown, ClassTransient, ClassDenied, ClassConflict, ClassAmbiguous:
	}
	return d
}

// follows reports whether the call was about an operation that goes on.
func (a Answer) follows() bool { return a.Of == ActionPoll || a.Of == ActionCancel }

// decideUnclear is row 32: it is unknown whether a change took effect, so only an observation
// helps.
func decideUnclear(f Facts) (d Decision, ok bool) {
	if f.Last.Class != ClassAmbiguous || !f.Last.Of.Mutates() {
		return Decision{}, false
	}
	d = Decision{Row: 32, Action: ActionObserve, Reason: ReasonVerifying}
	if f.Record.KnownID {
		return d, true
	}
	if f.Identity == IdentityMark && f.Found == FoundNotAsked {
		d.Action = ActionFindOwned
		return d, true
	}
	d.Action, d.State, d.Wake, d.Show.Creating = ActionNone, StateCreating, WakeSoon, ShowTrue
	if f.Deleting {
		d = Terminating(d)
	}
	return d, true
}

// Mutates reports whether the action can change the external resource.
func (a Action) Mutates() bool {
	switch a {
	case ActionCreate, ActionUpdate, ActionDelete, ActionCancel, ActionPrepareDelete, ActionMark, ActionUnmark:
		return true
	case ActionNone, ActionObserve, ActionWriteMarker, ActionPoll, ActionFindOwned,
		ActionAdopt, ActionPublish, ActionComplete, ActionFinish, ActionRemoveFinalizer, ActionConfirm, ActionStop:
	}
	return false
}

// failedShow is what the conditions say after a failed call. Failed is shown beside what was in
// progress, which a failed read does not change.
func failedShow(a Action) Show {
	s := Show{Failed: ShowTrue}
	switch a {
	case ActionCreate:
		s.Ready, s.Creating, s.Updating = ShowFalse, ShowFalse, ShowFalse
	case ActionUpdate:
		s.Updating = ShowTrue
	case ActionDelete:
		s.Ready, s.Updating = ShowFalse, ShowTrue
	default:
	}
	return s
}

// failureReason names the call that failed and what its error means.
func failureReason(a Answer) Reason {
	if a.Timeout {
		return ReasonTimeout
	}
	return callName(a.Of) + classSuffix(a.Class)
}

func callName(a Action) Reason {
	switch a {
	case ActionObserve, ActionFindOwned:
		return "Observe"
	case ActionPoll:
		return "Poll"
	case ActionCreate:
		return "Create"
	case ActionUpdate:
		return "Update"
	case ActionDelete, ActionPrepareDelete:
		return "Delete"
	case ActionPublish:
		return "Publish"
	case ActionFinish:
		return "Finish"
	case ActionCancel:
		return "Cancel"
	case ActionMark:
		return "Mark"
	case ActionUnmark:
		return "Unmark"
	case ActionNone, ActionWriteMarker, ActionAdopt, ActionComplete, ActionRemoveFinalizer, ActionConfirm, ActionStop:
	}
	return "Reconcile"
}

func classSuffix(c Class) Reason {
	switch c {
	case ClassDenied:
		return "Denied"
	case ClassInvalid:
		return "Invalid"
	case ClassConflict:
		return "Conflict"
	case ClassTerminal:
		return "Refused"
	case ClassUnknown, ClassTransient, ClassThrottled, ClassAmbiguous, ClassNotReady:
	}
	return "Failed"
}

// refused is the second half of row 25: the API permanently refused this very call, and nothing
// that it depends on has changed since.
func refused(f Facts, a Action) Decision {
	as := ClassInvalid
	if f.RefusedAs == ClassTerminal {
		as = ClassTerminal
	}
	d := stopped(25, callName(a)+classSuffix(as))
	d.Show = failedShow(a)
	return d
}

// NoEffect reports whether an error of class c can only mean that nothing was done.
func NoEffect(c Class) bool {
	switch c {
	case ClassThrottled, ClassDenied, ClassInvalid, ClassConflict, ClassTerminal, ClassNotReady:
		return true
	case ClassUnknown, ClassTransient, ClassAmbiguous:
	}
	return false
}

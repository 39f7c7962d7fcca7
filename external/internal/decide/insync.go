package decide

// decideInSync is rows 16 and 17.
func decideInSync(f Facts) Decision {
	d := Decision{
		Row: 17, State: StateSucceeded, Reason: ReasonAvailable, Wake: WakeDrift,
		Show: Show{Ready: ShowTrue, Creating: ShowFalse, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue},
	}
	if f.Seen.Phase == PhaseDegraded {
		d.State, d.Reason, d.Wake, d.Show.Ready = StateVerifying, ReasonDegraded, WakePoll, ShowFalse
		return d
	}
	if f.Incomplete && !f.Unpublished {
		return stopped(16, ReasonConnectionLost)
	}
	if f.Publish.Failed {
		return leftUndone(f, f.Publish)
	}
	if f.Finish.Failed {
		return leftUndone(f, f.Finish)
	}
	if f.Finishes && !f.Did.Finish {
		d.Row, d.Action, d.Reason, d.Wake = 16, ActionFinish, ReasonCompleting, WakeNow
		if d.State = StateCompleting; f.ReadyFor == f.Generation {
			d.State = ""
		}
		return d
	}
	if f.Uncompleted && !f.Did.Complete {
		d.Row, d.Action, d.State, d.Reason, d.Wake = 16, ActionComplete, StateCompleting, ReasonCompleting, WakeNow
	}
	return d
}

// publish is row 16: users get the connection details before anything else is done about the resource.
func publish(f Facts) Decision {
	d := Decision{Row: 16, Action: ActionPublish, Reason: ReasonCompleting}
	if !f.Differs.Any() {
		d.State = StateCompleting
		d.Show = Show{Creating: ShowFalse, Updating: ShowFalse, Failed: ShowFalse, DependenciesReady: ShowTrue}
	}
	return d
}

// leftUndone is row 16 after a failure a. A resource that was complete before stays Ready.
func leftUndone(f Facts, a Answer) Decision {
	d := failedCall(a)
	d.Row, d.Show.Creating, d.Show.Updating = 16, ShowFalse, ShowFalse
	if a.Class == ClassNotReady {
		d.State = StateCompleting
	}
	if f.ReadyFor == 0 || f.Seen.Phase == PhaseMissing {
		d.Show.Ready = ShowFalse
	}
	return d
}

// decideInProgress is row 6 for an API that does not say what it does: it creates the resource until that was Ready once.
func decideInProgress(f Facts) Decision {
	d := inProgress(ActionCreate)
	d.State, d.Reason = StateVerifying, ReasonVerifying
	made := !f.Did.Create && !f.LastReport.Creating
	if made && (f.ReadyFor > 0 || f.LastReport.Updating) || f.DeleteAccepted {
		d.Show.Creating, d.Show.Updating = ShowFalse, ShowTrue
	}
	if f.DeleteAccepted {
		d.State, d.Reason = StateRecreating, ReasonRecreating
	}
	return d
}

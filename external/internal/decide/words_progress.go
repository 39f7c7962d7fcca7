package decide

import (
	"cmp"
	"fmt"
)

// progress is about what is in progress or well; empty for other reasons.
func (t Texts) progress(d Decision, f Facts) string {
	switch d.Reason {
	case ReasonAvailable:
		return t.matches()
	case ReasonObserving:
		return "observing " + t.Resource
	case ReasonCreating:
		return "creating " + t.Resource + t.by(d)
	case ReasonRecreatedAfterLoss:
		return "recreating " + t.Resource + ", which was deleted outside the operator"
	case ReasonMissingAfterRestart:
		return "creating " + t.Resource + ", which an earlier run of the operator may have created and which does not exist"
	case ReasonCompleting:
		if d.Action == ActionComplete {
			return "completing the spec with what the API has chosen for " + t.Resource
		}
		if d.Action == ActionFinish {
			return "finishing " + t.Resource
		}
		return "publishing the connection details of " + t.Resource
	case ReasonConnectionLost:
		return t.Lost + ", which the API shows only when it creates the resource; add it there, or delete the object and create it again"
	case ReasonVerifying:
		return t.verifying(d, f)
	case ReasonDeleting:
		if d.Row == 6 && f.Op.Of != ActionDelete {
			return fmt.Sprintf("%s is deleted when its %s ends (%s)", t.Resource, nounOf(f.Op.Of), t.Operation)
		}
		return "deleting " + t.Resource + t.by(d)
	case ReasonExternalDeletion:
		return t.Resource + " is being deleted outside the operator; it will be recreated"
	case ReasonExternalFailed, ReasonDegraded:
		return t.unhealthy(d, f)
	case ReasonTimeout:
		return fmt.Sprintf("the %s of %s takes longer than %s (%s); waiting until it ends", nounOf(f.Op.Of), t.Resource, t.Limit, t.Operation)
	case ReasonOrphaned:
		return t.Resource + " is kept, as the deletion policy or the permissions require"
	case ReasonNeverCreated:
		return t.Resource + " was never created"
	case ReasonAbsent:
		return t.Resource + " is gone"
	default:
	}
	return ""
}

// nounOf is what an operation does.
func nounOf(a Action) string {
	switch a {
	case ActionCreate:
		return "creation"
	case ActionDelete:
		return "deletion"
	default:
	}
	return a.String()
}

// by names the operation that is being followed.
func (t Texts) by(d Decision) string {
	if d.Row != 6 || t.Operation == "" {
		return ""
	}
	return " (" + t.Operation + ")"
}

// verifying is about a resource of which nothing can be said yet.
func (t Texts) verifying(d Decision, f Facts) string {
	switch {
	case f.Last.Failed && f.Last.Of.Mutates():
		return fmt.Sprintf("cannot tell whether the %s of %s took effect: %s; observing", f.Last.Of, t.Resource, t.Error)
	case f.Seen.Phase == PhaseInProgress:
		return fmt.Sprintf("%s is not ready yet: %s", t.Resource, cmp.Or(t.External, "the external system is working on it"))
	case f.Deleting:
		return "waiting until an earlier create of " + t.Resource + " can no longer take effect"
	case d.Action == ActionAdopt:
		return "adopting " + t.Resource
	case d.Row == 8, d.Row == 9, d.Row == 10:
		return "searching for " + t.Resource + ", which may have been created"
	case f.Creation == CreationPossible:
		return "waiting until an earlier create of " + t.Resource + " can no longer take effect, before creating it again"
	}
	return t.Resource + " was created but is not visible yet"
}

// unhealthy passes on what the external system reports about a resource.
func (t Texts) unhealthy(d Decision, f Facts) string {
	said := t.External
	if said == "" {
		said = "the external system reports " + t.Phase
	}
	text := t.Resource + ": " + said
	switch {
	case d.Action == ActionStop:
		return text + "; change the spec, or delete it in the external system to have it recreated"
	case stalled(d, f):
		return text + "; " + t.GaveUp
	}
	return text + "; observing again"
}

// matches says that the resource matches the spec, and which differences are not enforced.
func (t Texts) matches() string {
	text := t.Resource + " matches the spec"
	if t.Ignored != "" {
		text += "; not enforced: " + t.Ignored
	}
	return text
}

// matched says for which generation the resource last matched the spec.
func (t Texts) matched(f Facts, generation int64) string {
	if f.Seen.Observed {
		return fmt.Sprintf("%s works; it last matched the spec of generation %d", t.Resource, generation)
	}
	return fmt.Sprintf("%s matched the spec of generation %d when it was last observed", t.Resource, generation)
}

// unready returns the call that needs something that does not exist yet, and what the call said.
func (t Texts) unready(f Facts) (of Action, said string) {
	switch {
	case f.Last.Failed:
		return f.Last.Of, t.Error
	case f.Create.Failed:
		return f.Create.Of, t.CreateError
	case f.Publish.Failed:
		return f.Publish.Of, t.PublishError
	case f.Finish.Failed:
		return f.Finish.Of, t.FinishError
	}
	return f.Last.Of, t.Error
}

package external

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/api"
)

// message says in one sentence what a decision means and, where a person is needed, the way
// out. It holds nothing that differs from pass to pass.
func (p *pass[T, C, O]) message(d Decision) string {
	if p.facts.Last.Failed && d.Reason == failureReason(p.facts.Last) {
		return p.failedMessage(d)
	}
	switch d.Reason {
	case ReasonConnectFailed:
		return "connect to the external API: " + p.connect.Error() + "; it is tried again"
	case ReasonCallHangs:
		return p.hangs.Error()
	case ReasonThrottled:
		return "the external API asks for fewer calls; it is tried again later"
	case ReasonDependenciesNotReady:
		return "waiting: " + p.missing()
	case ReasonNotReady:
		return p.last.text + "; it is looked at again"
	case ReasonRecordCorrupt, ReasonInvalidName:
		return p.trouble.Error()
	case ReasonRenamed:
		return fmt.Sprintf("the thing is named %q and cannot become %q; set the name back, or delete the object and create it anew", p.record.ID, p.named)
	case ReasonPaused:
		return p.pausedMessage()
	case ReasonPolicyInvalid:
		return fmt.Sprintf("annotation %s is not understood; set it to \"delete\" or \"orphan\"", api.AnnotationDeletion)
	default: // below
	}
	if text := p.changeMessage(d); text != "" {
		return text
	}
	return p.progressMessage(d)
}

// failedMessage is about a call that failed just now.
func (p *pass[T, C, O]) failedMessage(d Decision) string {
	next := "; it is tried again"
	if d.Action == ActionStop {
		next = "; change the spec to try again"
		if p.last.class == ClassTerminal {
			next = fmt.Sprintf("; this needs a person, set annotation %s to try again", api.AnnotationReconcile)
		}
	}
	if p.facts.Deleting {
		next += ", and the object stays until then"
	}
	return fmt.Sprintf("%s %s: %s%s", p.facts.Last.Of, p.what(), p.last.text, next)
}

// changeMessage is about differences and permissions; empty for other reasons.
func (p *pass[T, C, O]) changeMessage(d Decision) string {
	grant := p.grant()
	switch d.Reason {
	case ReasonCreateNotPermitted:
		return "permission to create external resource is not set: " + p.what() + " does not exist" + grant
	case ReasonUpdateNotPermitted:
		return "permission to update external resource is not set: " + p.changes.With(InPlace).String() + grant
	case ReasonRecreateNotPermitted:
		return "permission to delete or recreate external resource is not set: " + p.changes.With(Recreate).String() + grant
	case ReasonApprovalRequired:
		return "a person must agree to a new " + p.what() + ", because the old one's content is lost"
	case ReasonImmutable:
		return "cannot be changed: " + p.changes.With(Unsupported).String() + "; set the spec back, or " + remedy(p.changes)
	case ReasonNotConverging:
		return fmt.Sprintf("%d updates were accepted and changed nothing: %s; change the spec to what the external system makes of it",
			NotConvergingAfter, p.changes.With(InPlace))
	case ReasonUpdating:
		return "updating " + p.what() + p.listed()
	case ReasonRecreating:
		return "creating " + p.what() + " anew" + p.listed()
	case ReasonNotOurs, ReasonContested, ReasonEndpointChanged, ReasonAdopting:
		return p.ownershipMessage(d.Reason)
	default:
	}
	return ""
}

// remedy is the way out of changes that are not supported.
func remedy(changes Changes) string {
	for _, c := range changes.With(Unsupported) {
		if c.Remedy != "" {
			return c.Remedy
		}
	}
	return "delete the object and create it anew"
}

func (p *pass[T, C, O]) listed() string {
	switch {
	case len(p.changes) > 0:
		return ": " + p.changes.String()
	case p.track.changing != "":
		return ": " + p.track.changing
	}
	return ""
}

// progressMessage is about what goes on or is well.
func (p *pass[T, C, O]) progressMessage(d Decision) string {
	switch d.Reason {
	case ReasonAvailable:
		return p.what() + " is as asked for"
	case ReasonCreating:
		return "creating " + p.what()
	case ReasonRecreatedAfterLoss:
		return "creating " + p.what() + " again, which was deleted behind the operator's back"
	case ReasonVerifying:
		return p.verifyingMessage()
	case ReasonDeleting:
		return "deleting " + p.what()
	case ReasonExternalDeletion:
		return p.what() + " is being deleted behind the operator's back; once it is gone it is created again"
	case ReasonExternalFailed, ReasonDegraded:
		return p.externalMessage(d)
	case ReasonDuplicate:
		return "several external things bear the mark of this object; delete all but one of them"
	case ReasonCreateUnknown:
		return fmt.Sprintf("a create was called and its answer is lost; look for the thing, delete it, and remove annotation %s", api.AnnotationExternal)
	case ReasonTimeout:
		return p.what() + " is not done by its deadline; it is looked at again"
	default:
	}
	if p.track.refusal.err != nil && d.Row == 25 {
		return fmt.Sprintf("%s %s: %s; change the spec to try again", p.track.refusal.action, p.what(), p.track.refusal.err)
	}
	return string(d.Reason)
}

// verifyingMessage: nothing can be said of the thing for a moment.
func (p *pass[T, C, O]) verifyingMessage() string {
	if p.facts.Deleting {
		return "making sure that " + p.what() + " does not appear late"
	}
	return p.what() + " is created but does not show yet"
}

// externalMessage passes on what the external system says about a thing it gave up on.
func (p *pass[T, C, O]) externalMessage(d Decision) string {
	text := p.seen.Message
	if text == "" {
		text = "the external system reports " + string(p.seen.Phase)
	}
	text = p.what() + ": " + text
	if d.Action == ActionStop {
		text += "; change the spec, or delete it there to have it created again"
	}
	return text
}

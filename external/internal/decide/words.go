package decide

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
)

// Texts are the strings that the messages of one pass are made of. Those from outside the process
// are already sanitized.
type Texts struct {
	// Resource names the resource: `stream "orders"`.
	Resource string
	// Error is the error of the last failed call.
	Error string
	// CreateError is the error of this pass's create, if it was refused.
	CreateError string
	// PublishError is why the connection details could not be published. Lost is where one is missing:
	// `Secret shop/orders has no key "token"`.
	PublishError, Lost string
	// FinishError is why the driver could not finish.
	FinishError string
	// Operation names an operation that is running: `operation "op-1"`. Limit is how long it may take.
	Operation, Limit string
	// Found are the ids of several resources with the mark: `: "i-1" and "i-2"`.
	Found string
	// Shut is why the external API is not called for now.
	Shut string
	// Hangs describes a call that has not returned.
	Hangs string
	// Unreflected is why status does not show all that was observed.
	Unreflected string
	// Uncompleted is why the spec is not completed.
	Uncompleted string
	// Connect is why there is no client.
	Connect string
	// Refusal is the error of a call that was permanently refused.
	Refusal string
	// Trouble is why the record or the name cannot be used.
	Trouble string
	// ExternalReason and External are what the external system reports about an unhealthy resource;
	// Phase is its phase.
	ExternalReason, External, Phase string
	// Changes are all differences to act on; InPlace, Recreate and Unsupported those of one
	// effect. Ignored are those that are not acted on.
	Changes, InPlace, Recreate, Unsupported, Ignored string
	// Remedy is the way out of changes that no call can make.
	Remedy string
	// Changing is what the last accepted change should change.
	Changing string
	// Waiting is what the object waits for: "Stream shop/orders: it does not exist".
	Waiting string
	// Paused says that changes are paused, by what and until when.
	Paused string
	// Problems are annotations with invalid values.
	Problems string
	// Holder names the object that has the better claim.
	Holder string
	// Owner, OwnerUID and OwnerCluster are what the resource's mark says.
	Owner, OwnerUID, OwnerCluster string
	// AdoptFrom and AdoptAlways are how to adopt the resource.
	AdoptFrom, AdoptAlways string
	// Grant is the way to a missing permission.
	Grant Grant
	// Adopted is the former owner of an adopted resource; empty if it was not adopted.
	Adopted string
	// MadeAt is the endpoint where the resource was created, Here the one the operator calls.
	MadeAt, Here string
	// Unmarked is the driver's type if a resource that this pass created bears no mark.
	Unmarked string
	// ID is the recorded name, Named the one that the spec yields.
	ID, Named string
	// FailedReason and Failed are the last reason and message of condition Failed.
	FailedReason, Failed string
	// GaveUp says that retries have ended, and after how many.
	GaveUp string
}

// Reason returns the decision's reason, or the external system's own for an unhealthy resource.
func (t Texts) Reason(d Decision) string {
	if (d.Reason == ReasonExternalFailed || d.Reason == ReasonDegraded) && t.ExternalReason != "" {
		return t.ExternalReason
	}
	return string(d.Reason)
}

// Message returns one sentence that says what a decision means, what happens next and, where a
// user has to act, what to do.
func (t Texts) Message(d Decision, f Facts) string {
	text := t.sentence(d, f)
	if t.Unreflected != "" {
		text += "; status does not show all of it: " + t.Unreflected
	}
	if t.Uncompleted != "" {
		text += "; the spec is not completed: " + t.Uncompleted
	}
	if t.Problems != "" && d.Reason != ReasonPolicyInvalid && !strings.HasSuffix(text, t.Problems) {
		text += "; " + t.Problems
	}
	return text
}

func (t Texts) sentence(d Decision, f Facts) string {
	switch {
	case f.Last.Failed && d.Reason == failureReason(f.Last):
		return t.failure(d, f, f.Last, t.Error)
	case f.Create.Failed && d.Reason == failureReason(f.Create):
		return t.failure(d, f, f.Create, t.CreateError)
	case f.Publish.Failed && d.Reason == failureReason(f.Publish):
		return t.failure(d, f, f.Publish, t.PublishError)
	case f.Finish.Failed && d.Reason == failureReason(f.Finish):
		return t.failure(d, f, f.Finish, t.FinishError)
	case f.repeatsFailure(d):
		return t.Failed
	}
	for _, about := range []func(Decision, Facts) string{t.trouble, t.change, t.ownership, t.progress} {
		if text := about(d, f); text != "" {
			return text
		}
	}
	return t.Resource + ": " + string(d.Reason)
}

// failure is about a call that has just failed.
func (t Texts) failure(d Decision, f Facts, a Answer, said string) string {
	return fmt.Sprintf("cannot %s %s: %s; %s", verb(a.Of), t.Resource, said, t.next(d, a.Class, f))
}

// next is what happens after a failure.
func (t Texts) next(d Decision, c Class, f Facts) string {
	switch {
	case d.Action == ActionStop && c == ClassTerminal:
		return fmt.Sprintf("set annotation %s to a new value to try again", api.AnnotationReconcile)
	case d.Action == ActionStop:
		return "change the spec"
	}
	return t.retry(d, f)
}

// retry says whether a failure is retried.
func (t Texts) retry(d Decision, f Facts) string {
	if stalled(d, f) {
		return t.GaveUp
	}
	return "retrying"
}

func verb(a Action) string {
	switch a {
	case ActionMark:
		return "put the ownership mark on"
	case ActionUnmark:
		return "take the ownership mark off"
	case ActionPoll:
		return "follow the operation on"
	case ActionFindOwned:
		return "search for"
	case ActionPublish:
		return "publish the connection details of"
	case ActionPrepareDelete:
		return "prepare the deletion of"
	default:
	}
	return a.String()
}

// trouble is about what keeps the resource from being observed; empty for other reasons.
func (t Texts) trouble(d Decision, f Facts) string {
	switch d.Reason {
	case ReasonConnectFailed:
		return "cannot connect to the external API: " + t.Connect + "; " + t.retry(d, f)
	case ReasonReconcileFailed:
		return "cannot reconcile " + t.Resource + ": " + t.Error + "; " + t.retry(d, f)
	case ReasonCallHangs:
		return t.Hangs
	case ReasonThrottled:
		return "the external API throttles requests; " + t.Resource + " is reconciled when it accepts requests again"
	case ReasonUnreachable:
		return t.unreachable() + "; retrying"
	case ReasonDependenciesNotReady:
		return t.waiting()
	case ReasonNotReady:
		of, said := t.unready(f)
		return fmt.Sprintf("cannot %s %s yet: %s; retrying", verb(of), t.Resource, said)
	case ReasonRecordCorrupt, ReasonInvalidName:
		return t.Trouble
	case ReasonUndeclaredID:
		return t.given(f)
	case ReasonRenamed:
		return fmt.Sprintf("%s cannot be renamed to %q; set the name back, or delete the object and create it again", t.Resource, t.Named)
	case ReasonPaused:
		return t.paused(f)
	case ReasonPolicyInvalid:
		if t.Problems != "" {
			return t.Problems
		}
		return fmt.Sprintf("annotation %s is not valid; set it to \"delete\" or \"orphan\"", api.AnnotationDeletion)
	case ReasonCreateDoubtful:
		return fmt.Sprintf("%s exists although the API refused to create it, and nothing shows who owns it; delete it in the external system, "+
			"or set annotation %s to \"orphan\" to keep it", t.Resource, api.AnnotationDeletion)
	case ReasonDuplicate:
		return "several external resources carry the ownership mark of this object" + t.Found + "; delete all but one of them"
	case ReasonCreateUnknown:
		return fmt.Sprintf("the answer to a create request was lost; find the resource, delete it, and remove annotation %s", api.AnnotationExternal)
	default:
	}
	return ""
}

// Unconnected is the prefix of Shut if the scope is shut because connecting failed.
const Unconnected = "connect: "

// unreachable is about an API that cannot be reached.
func (t Texts) unreachable() string {
	why := cmp.Or(t.Connect, t.Shut)
	if cause, is := strings.CutPrefix(why, Unconnected); is {
		return "cannot connect to the external API: " + cause
	}
	if why != "" {
		why = ": " + why
	}
	return "the external API does not answer" + why
}

// given is about an identity that the API assigned.
func (t Texts) given(f Facts) string {
	switch {
	case f.Deleting && f.Seen.Observed && f.Seen.Phase != PhaseMissing:
		return fmt.Sprintf("the resource with the id %q, which the API assigned, carries no ownership mark, so it is not deleted; "+
			"delete it in the external system if it belongs to this object, and set annotation %s to \"orphan\"", t.ID, api.AnnotationDeletion)
	case f.Deleting:
		return fmt.Sprintf("no resource with the id %q, which the API assigned, can be found, so it cannot be deleted; "+
			"delete it in the external system, and set annotation %s to \"orphan\"", t.ID, api.AnnotationDeletion)
	}
	return fmt.Sprintf("the API assigned the id %q instead of the name %q, which its driver does not declare; nothing is created again, "+
		"and deleting the object deletes the resource with that id; set Options.AssignedIDs in the operator, or create resources under the ID in the request", t.ID, t.Named)
}

// change is about differences and permissions; empty for other reasons.
func (t Texts) change(d Decision, f Facts) string {
	switch d.Reason {
	case ReasonCreateNotPermitted:
		return "permission to create external resource is not set: " + t.Resource + " does not exist" + t.Grant.to("c")
	case ReasonUpdateNotPermitted:
		return "permission to update external resource is not set: " + t.InPlace + t.Grant.to("u")
	case ReasonRecreateNotPermitted:
		return "permission to delete or recreate external resource is not set: " + t.Recreate + t.Grant.to("cd")
	case ReasonApprovalRequired:
		return "recreating " + t.Resource + " loses its content and needs approval"
	case ReasonImmutable:
		return fmt.Sprintf("%s cannot be changed: %s; revert the spec, or %s", t.Resource, t.Unsupported, t.Remedy)
	case ReasonNotConverging:
		if d.Row == 9 {
			return fmt.Sprintf("%d calls of Mark for %s were accepted, but no observation shows the ownership mark; the external system must keep it, "+
				"and the driver must return it in Observation.Mark", NotConvergingAfter, t.Resource)
		}
		return t.restless(f)
	case ReasonUpdating:
		return "updating " + t.Resource + t.by(d) + t.listed()
	case ReasonRecreating:
		return "recreating " + t.Resource + t.by(d) + t.listed()
	default:
	}
	if d.Row == 25 && t.Refusal != "" && f.Refused != ActionNone {
		return fmt.Sprintf("cannot %s %s: %s; %s", verb(f.Refused), t.Resource, t.Refusal, t.next(d, f.RefusedAs, f))
	}
	return ""
}

// restless is about changes that were made and left the same difference.
func (t Texts) restless(f Facts) string {
	const wayOut = "change the spec to what the external system reports"
	if f.Differs.Recreate && f.FutileDeletes >= NotConvergingAfter {
		return fmt.Sprintf("%d calls of Delete returned that %s is gone, but Observe still shows it, so it cannot be recreated: %s; "+
			"delete it in the external system; the driver must set DeleteResponse.Gone only if no observation shows the resource again",
			NotConvergingAfter, t.Resource, t.Recreate)
	}
	if f.Differs.Recreate {
		return fmt.Sprintf("%s was recreated %d times and still differs: %s; %s", t.Resource, NotConvergingAfter, t.Recreate, wayOut)
	}
	return fmt.Sprintf("%d updates of %s were accepted, and it still differs: %s; %s", NotConvergingAfter, t.Resource, t.InPlace, wayOut)
}

func (t Texts) listed() string {
	switch {
	case t.Changes != "":
		return ": " + t.Changes
	case t.Changing != "":
		return ": " + t.Changing
	}
	return ""
}

// Loss is the event's text about a resource that no longer exists.
func (t Texts) Loss(d Decision) string {
	if d.Reason == ReasonMissingAfterRestart {
		return t.Resource + " existed when the operator last ran and does not exist any more; recreating it"
	}
	return t.Resource + " was deleted outside the operator; recreating it"
}

// ownership says who owns the resource, and how to get it; empty for other reasons.
func (t Texts) ownership(d Decision, f Facts) string {
	switch d.Reason {
	case ReasonContested:
		return fmt.Sprintf("this object and %s both have a record of %s, and nothing proves which is right; "+
			"neither changes or deletes it until one of them is deleted with annotation %s=orphan", t.Holder, t.Resource, api.AnnotationDeletion)
	case ReasonEndpointChanged:
		return fmt.Sprintf("%s was created at %s, but the operator now connects to %s; connect to the former again, or set annotation %s to %q to leave the resource there",
			t.Resource, t.MadeAt, t.Here, api.AnnotationEndpoint, t.Here)
	case ReasonAdopting:
		return "adopting " + t.Resource + ": setting the ownership mark of this object"
	case ReasonNotOurs:
	default:
		return ""
	}
	if f.Seen.Rival != RivalNone {
		return t.belongsTo(t.Holder)
	}
	return t.notOurs(f)
}

func (t Texts) belongsTo(owner string) string {
	return fmt.Sprintf("%s belongs to %s; choose another name, or delete that object with annotation %s=orphan first",
		t.Resource, owner, api.AnnotationDeletion)
}

// notOurs says who owns the resource according to its mark.
func (t Texts) notOurs(f Facts) string {
	switch f.Seen.Owner {
	case OwnerOther:
		return t.belongsTo(t.Owner) + "; if that object is gone for good, " + t.AdoptFrom
	case OwnerForeign:
		cluster := t.OwnerCluster
		if cluster == "" {
			cluster = "its mark does not say which"
		}
		return fmt.Sprintf("%s belongs to %s in another cluster (%s); choose another name, or, if that object is gone for good, %s",
			t.Resource, t.Owner, cluster, t.AdoptFrom)
	case OwnerNamesake, OwnerRestored, OwnerStated:
		return fmt.Sprintf("%s belongs to an earlier %s with UID %s; %s", t.Resource, t.Owner, t.OwnerUID, t.AdoptAlways)
	case OwnerNobody, OwnerUs, OwnerRecorded:
	}
	switch {
	case t.Unmarked != "":
		return fmt.Sprintf("%s was just created and carries no ownership mark; %s must store CreateRequest.Mark on the resource and return it in "+
			"Observation.Mark, or set Options.Unmarked; until then the resource is kept when the object is deleted", t.Resource, t.Unmarked)
	case t.Adopted != "":
		return fmt.Sprintf("%s was adopted, which the adoption policy no longer allows; %s", t.Resource, t.AdoptAlways)
	}
	return fmt.Sprintf("%s exists, and nothing shows that it belongs to this object; %s", t.Resource, t.AdoptAlways)
}

func (t Texts) waiting() string { return "waiting for " + t.Waiting }

func (t Texts) paused(f Facts) string {
	switch {
	case f.Last.Failed:
		return fmt.Sprintf("%s; cannot %s %s: %s; retrying", t.Paused, verb(f.Last.Of), t.Resource, t.Error)
	case f.Scope != ScopeOpen:
		return t.Paused + "; " + t.unseen(f)
	case t.Changes != "":
		return t.Paused + "; differs: " + t.Changes
	}
	return t.Paused
}

// unseen says why the resource cannot be observed.
func (t Texts) unseen(f Facts) string {
	why := ReasonUnreachable
	switch f.Scope {
	case ScopeUnconnectable:
		why = ReasonConnectFailed
	case ScopeThrottled:
		why = ReasonThrottled
	case ScopeOccupied:
		why = ReasonCallHangs
	case ScopeDown, ScopeOpen:
	}
	return t.trouble(Decision{Reason: why}, f)
}

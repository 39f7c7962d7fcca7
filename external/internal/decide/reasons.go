package decide

// severity is how much a reason matters to whoever runs the object.
type severity string

const (
	// routine: nothing to do.
	routine severity = "routine"
	// passing: it goes away by itself; look if it stays.
	passing severity = "passing"
	// person: nothing goes on until somebody does something.
	person severity = "person"
)

// meaning is what a reason says, and the way out.
type meaning struct {
	reason   Reason
	severity severity
	sentence string
	remedy   string
}

// meanings are all reasons that decisions give, but for those of failed calls.
func meanings() []meaning {
	return []meaning{
		{ReasonAvailable, routine, "The thing is as the spec asks.", ""},
		{ReasonObserving, routine, "The thing is being looked at.", ""},
		{ReasonCreating, routine, "The thing is being created.", ""},
		{ReasonUpdating, routine, "The thing is being changed in place.", ""},
		{ReasonRecreating, routine, "The thing is deleted and created anew, because the change takes that.", ""},
		{ReasonDeleting, routine, "The thing is being deleted.", ""},
		{ReasonVerifying, routine, "It is being made sure what became of the thing.", ""},
		{ReasonAdopting, routine, "A thing that is taken over gets the mark of the object.", ""},
		{ReasonCompleting, routine, "Outputs for other objects are being published.", ""},
		{ReasonAbsent, routine, "The thing is gone, and the object goes.", ""},
		{ReasonOrphaned, routine, "The thing stays, as the policy says, and the object goes.", ""},
		{ReasonNeverCreated, routine, "Nothing was ever created for the object, which goes.", ""},
		{ReasonDependenciesNotReady, passing, "An object that this one needs does not exist or is not ready.", "See to that object; this one goes on by itself."},
		{ReasonNotReady, passing, "Something outside that the call needs is not there yet.", "Wait."},
		{ReasonThrottled, passing, "The API asks for fewer calls.", "Wait, or raise the quota."},
		{ReasonConnectFailed, passing, "There is no client of the API.", "Correct address or credentials of the operator."},
		{ReasonUnreachable, passing, "The API does not answer anybody.", "See how the API is doing; it is tried again."},
		{ReasonCallHangs, passing, "The driver has not returned from a call whose time is over.", "Restart the operator; the driver must obey its context."},
		{ReasonTimeout, passing, "A call or an operation is not done by its deadline.", "See how the API is doing."},
		{ReasonReconcileFailed, passing, "The pass failed on the side of Kubernetes or of the operator.", "See the message; it is retried."},
		{ReasonDegraded, passing, "The thing exists and is not fully usable.", "See the message, which is the system's own."},
		{ReasonExternalDeletion, passing, "Somebody else is deleting the thing.", "It is created again once it is gone."},
		{ReasonRecreatedAfterLoss, passing, "Somebody deleted the thing; it is created again.", "Find out who, if what it held matters."},
		{ReasonMissingAfterRestart, passing, "The thing was not there when the operator came back; it is created again.", "Find out who deleted it, if what it held matters."},
		{ReasonCreateDoubtful, passing, "A create was refused and something bears the name all the same; nobody can tell whose it is.", "Delete the thing there, or set annotation trimtab.dev/deletion to orphan."},
		{ReasonPaused, person, "An annotation pauses changes.", "Remove annotation trimtab.dev/paused."},
		{ReasonPolicyInvalid, person, "An annotation that limits the operator is not understood; the safest meaning holds.", "Correct the annotation."},
		{ReasonCreateNotPermitted, person, "The thing does not exist and may not be created.", "Allow it by annotation trimtab.dev/access-permissions."},
		{ReasonUpdateNotPermitted, person, "The thing differs and may not be changed.", "Allow it by annotation trimtab.dev/access-permissions."},
		{ReasonRecreateNotPermitted, person, "The change takes a new thing, which is not permitted.", "Allow it by annotation trimtab.dev/access-permissions."},
		{ReasonApprovalRequired, person, "What the thing holds would be lost.", "Agree, or set the spec back."},
		{ReasonImmutable, person, "No call can make the change.", "Set the spec back, or do what the message says."},
		{ReasonNotConverging, person, "The API accepts the change and does not make it.", "Set the spec to what the API makes of it."},
		{ReasonExternalFailed, person, "Its system gave up on the thing.", "Change the spec, or delete the thing there."},
		{ReasonNotOurs, person, "The thing belongs to somebody else, or nothing proves whose it is.", "Choose another name, or take it over as the message says."},
		{ReasonContested, person, "Two objects each have a record of the thing, and nothing proves either.", "Delete one of them with annotation trimtab.dev/deletion=orphan."},
		{ReasonEndpointChanged, person, "The thing was made at another endpoint.", "Let the operator talk to that one, or state the new one by annotation trimtab.dev/endpoint."},
		{ReasonDuplicate, person, "Several things bear the object's mark.", "Delete all but one."},
		{ReasonCreateUnknown, person, "A create was called, and nobody can find out what it made.", "Look for the thing, delete it, and remove annotation trimtab.dev/external."},
		{ReasonIDNotSupported, person, "The API gave the thing an id of its own, under which it cannot be found again.", "The driver must give the name; delete the thing of the id in the message."},
		{ReasonRecordCorrupt, person, "The record of the thing cannot be read.", "Restore annotation trimtab.dev/external, or remove it."},
		{ReasonInvalidName, person, "The spec gives the thing no valid name.", "Correct the spec."},
		{ReasonRenamed, person, "The spec gives the thing another name than it has.", "Set the name back, or delete the object and create it anew."},
	}
}

// failureMeanings are what the error of a call means, by the end of its reason: CreateDenied.
func failureMeanings() []meaning {
	return []meaning{
		{"Failed", passing, "The call failed, and may work later.", "See the message; it is retried, ever more slowly."},
		{"Denied", passing, "The API does not accept the operator's credentials, or does not allow the call.", "Correct the operator's rights there; it is retried."},
		{"Conflict", passing, "The present state of something there does not allow the call.", "See the message; it is retried."},
		{"Invalid", person, "The API refuses what the spec asks for.", "Change the spec."},
		{"Refused", person, "The API refuses the call for good.", "See the message, then set annotation trimtab.dev/reconcile to a new value."},
	}
}

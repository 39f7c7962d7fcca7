package decide

// severity is how much a reason matters to whoever runs the object.
type severity string

const (
	// routine means that there is nothing to do.
	routine severity = "routine"
	// passing means that the condition usually goes away by itself.
	passing severity = "passing"
	// person means that somebody has to act.
	person severity = "person"
)

// meaning explains a reason, and says what to do.
type meaning struct {
	reason   Reason
	severity severity
	sentence string
	remedy   string
}

// meanings explain all reasons of decisions except those of failed calls.
func meanings() []meaning {
	return []meaning{
		{ReasonAvailable, routine, "The resource matches the spec.", ""},
		{ReasonObserving, routine, "The resource is being observed.", ""},
		{ReasonCreating, routine, "The resource is being created.", ""},
		{ReasonUpdating, routine, "The resource is being changed in place.", ""},
		{ReasonRecreating, routine, "The resource is deleted and created again, because the change requires it.", ""},
		{ReasonDeleting, routine, "The resource is being deleted.", ""},
		{ReasonVerifying, routine, "The operator checks what happened to the resource.", ""},
		{ReasonAdopting, routine, "An adopted resource gets the ownership mark of the object.", ""},
		{ReasonCompleting, routine, "The connection details are being published, or the spec is being completed.", ""},
		{ReasonAbsent, routine, "The resource is gone; the finalizer is removed.", ""},
		{ReasonOrphaned, routine, "The resource is kept, as the policy requires; the finalizer is removed.", ""},
		{ReasonNeverCreated, routine, "No resource was ever created for the object; the finalizer is removed.", ""},
		{ReasonDependenciesNotReady, passing, "An object that this one needs does not exist or is not ready.", "Fix that object; this one continues by itself."},
		{ReasonNotReady, passing, "Something that the call needs does not exist yet.", "Wait."},
		{ReasonThrottled, passing, "The API throttles requests.", "Wait, or raise the quota."},
		{ReasonConnectFailed, passing, "No client of the API could be created.", "Correct the address or the credentials of the operator."},
		{ReasonUnreachable, passing, "The API answers no requests.", "Check the API; it is retried."},
		{ReasonCallHangs, passing, "The driver has not returned from a call after its deadline.", "Restart the operator; the driver must obey its context."},
		{ReasonTimeout, passing, "A call or an operation exceeded its deadline.", "Check the API; it is retried."},
		{ReasonReconcileFailed, passing, "The pass failed because of Kubernetes or the operator, not because of the API.", "See the message; it is retried."},
		{ReasonDegraded, passing, "The resource exists but is not fully usable.", "See the message, which is that of the external system."},
		{ReasonExternalDeletion, passing, "The resource is being deleted outside the operator.", "Wait; it is recreated when it is gone."},
		{ReasonRecreatedAfterLoss, passing, "The resource was deleted outside the operator and is recreated.", "Find out who deleted it, if its content matters."},
		{ReasonMissingAfterRestart, passing, "The resource was missing when the operator started and is recreated.", "Find out who deleted it, if its content matters."},
		{ReasonCreateDoubtful, passing, "The API refused a create, but a resource with that name exists, and nothing shows who owns it.", "Delete the resource in the external system, or set annotation trimtab.dev/deletion to orphan."},
		{ReasonPaused, person, "An annotation pauses changes.", "Remove annotation trimtab.dev/paused."},
		{ReasonPolicyInvalid, person, "An annotation that restricts the operator is not valid; the safest interpretation applies.", "Correct the annotation."},
		{ReasonCreateNotPermitted, person, "The resource does not exist, and the operator may not create it.", "Allow it as the message says."},
		{ReasonUpdateNotPermitted, person, "The resource differs from the spec, and the operator may not change it.", "Allow it as the message says."},
		{ReasonRecreateNotPermitted, person, "The change requires a new resource, and the operator may not recreate it.", "Allow it as the message says."},
		{ReasonImmutable, person, "No call can make the change.", "Revert the spec, or do what the message says."},
		{ReasonNotConverging, person, "The API accepts the change but the difference remains.", "Change the spec to what the external system reports."},
		{ReasonExternalFailed, person, "The external system reports that the resource has failed.", "Change the spec, or delete the resource in the external system."},
		{ReasonNotOurs, person, "The resource belongs to another object, or nothing shows who owns it.", "Choose another name, or adopt it as the message says."},
		{ReasonContested, person, "Two objects both have a record of the resource, and nothing proves which is right.", "Delete one of them with annotation trimtab.dev/deletion=orphan."},
		{ReasonEndpointChanged, person, "The resource was created at another endpoint.", "Connect to that endpoint again, or name the new one in annotation trimtab.dev/endpoint."},
		{ReasonDuplicate, person, "Several resources carry the ownership mark of the object.", "Delete all but one."},
		{ReasonCreateUnknown, person, "The answer to a create request was lost, and it is not known what was created.", "Find the resource, delete it, and remove annotation trimtab.dev/external."},
		{ReasonUndeclaredID, person, "The API assigned an id, and the driver does not say that it does.", "Set Options.AssignedIDs in the operator."},
		{ReasonConnectionLost, person, "A connection detail is lost that the API shows only when it creates the resource.", "Put it where the message says, or delete the object and create it again."},
		{ReasonRecordCorrupt, person, "The record of the resource cannot be read.", "Restore annotation trimtab.dev/external, or remove it."},
		{ReasonInvalidName, person, "The spec yields no valid name for the resource.", "Correct the spec."},
		{ReasonRenamed, person, "The spec yields another name than the resource has.", "Revert the name, or delete the object and create it again."},
	}
}

// futureMeanings explain reasons that no fact leads to yet, so docs/status.md does not show them.
func futureMeanings() []meaning {
	return []meaning{
		{ReasonApprovalRequired, person, "The content of the resource would be lost.", "Revert the spec."},
	}
}

// failureMeanings explain the error classes of failed calls, by the suffix of the reason:
// CreateDenied.
func failureMeanings() []meaning {
	return []meaning{
		{"Failed", passing, "The call failed and may succeed later.", "See the message; it is retried with growing delays."},
		{"Denied", passing, "The API rejects the credentials of the operator or does not permit the call.", "Correct the permissions there; it is retried."},
		{"Conflict", passing, "The current state of a resource does not allow the call.", "See the message; it is retried."},
		{"Invalid", person, "The API refuses what the spec asks for.", "Change the spec."},
		{"Refused", person, "The API refuses the call for good.", "See the message, then set annotation trimtab.dev/reconcile to a new value."},
	}
}

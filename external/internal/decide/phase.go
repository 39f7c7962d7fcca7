package decide

// Phase is where an external resource is in its life cycle. The set is closed.
type Phase string

const (
	// PhaseMissing means that the resource does not exist.
	PhaseMissing Phase = "Missing"
	// PhaseCreating, PhaseUpdating and PhaseDeleting mean that the external system is working on
	// the resource.
	PhaseCreating Phase = "Creating"
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	// PhaseInProgress means that the external system is working on the resource, and does not say what it does.
	PhaseInProgress Phase = "InProgress"
	// PhaseAvailable means that the resource can be used.
	PhaseAvailable Phase = "Available"
	// PhaseDegraded means that the resource exists and can be changed, but is not fully usable.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed means that the external system reports the resource as failed.
	PhaseFailed Phase = "Failed"
)

package decide

// Phase is where an external resource is in its life cycle. The set is closed.
type Phase string

const (
	// PhaseMissing: it does not exist.
	PhaseMissing Phase = "Missing"
	// PhaseCreating, PhaseUpdating and PhaseDeleting: the external system is working on it.
	PhaseCreating Phase = "Creating"
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	// PhaseAvailable: it can be used.
	PhaseAvailable Phase = "Available"
	// PhaseDegraded: it exists and can be changed, but is not fully usable.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed: the external system reports that it failed.
	PhaseFailed Phase = "Failed"
)

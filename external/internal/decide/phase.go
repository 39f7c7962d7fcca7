package decide

// Phase is where an external thing stands in its life. The set is closed.
type Phase string

const (
	// PhaseMissing: it does not exist.
	PhaseMissing Phase = "Missing"
	// PhaseCreating, PhaseUpdating and PhaseDeleting: its system is at work on it.
	PhaseCreating Phase = "Creating"
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	// PhaseAvailable: it can be used.
	PhaseAvailable Phase = "Available"
	// PhaseDegraded: it exists and can be changed, but is not fully usable.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed: its system gave up on it.
	PhaseFailed Phase = "Failed"
)

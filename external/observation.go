package external

import "time"

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

// Observation is what one read of an external thing showed.
type Observation[O any] struct {
	Phase Phase
	// Have is the thing as its API returned it; the zero value when Missing.
	Have O
	// Mark is the ownership mark found on the thing. Nil means its API cannot hold marks;
	// empty means it holds none.
	Mark Mark
	// External is the system's own word for the state, for people.
	External string
	// Reason (CamelCase) and Message explain PhaseDegraded and PhaseFailed.
	Reason, Message string
	// Recoverable tells for PhaseFailed whether trying again can help.
	Recoverable bool
	// PollAfter is a hint for the next look while the system is at work. Zero means 1 s,
	// growing to 30 s.
	PollAfter time.Duration
}

// Missing says that the thing does not exist.
func Missing[O any]() Observation[O] { return Observation[O]{Phase: PhaseMissing} }

// Available says that the thing is there and can be used. mark is nil if its API cannot
// hold marks.
func Available[O any](have O, mark Mark) Observation[O] {
	if mark == nil {
		return Observation[O]{Phase: PhaseAvailable, Have: have}
	}
	return Observation[O]{Phase: PhaseAvailable, Have: have, Mark: mark}
}

// Busy says that its system is at work on the thing: p is Creating, Updating or Deleting.
func Busy[O any](p Phase, have O) Observation[O] { return Observation[O]{Phase: p, Have: have} }

// Failed says that its system gave up on the thing.
func Failed[O any](have O, reason, message string, recoverable bool) Observation[O] {
	return Observation[O]{Phase: PhaseFailed, Have: have, Reason: reason, Message: message, Recoverable: recoverable}
}

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
	// Phase is where the thing stands. The empty phase is a mistake of the driver and
	// fails the pass.
	Phase Phase
	// Have is the thing as its API returned it; the zero value when Missing.
	Have O
	// Mark is the ownership mark found on the thing. Nil and empty mean that it carries
	// none, and that it is not ours; an API that cannot hold marks is declared by
	// [Options.Unmarked].
	Mark Mark
	// External is the system's own word for the state, for people.
	External string
	// Reason (CamelCase) and Message explain PhaseDegraded and PhaseFailed.
	Reason, Message string
	// Recoverable tells for PhaseFailed whether trying again can help.
	Recoverable bool
	// PollAfter is a hint for the next look while the system is at work. Zero means 1 s,
	// growing to 30 s. It counts as at least 100 ms, growing to 5 s where the work never ends,
	// and at most the drift interval, or 10 min where there is none.
	PollAfter time.Duration
}

// compared tells whether the thing is complete enough to be compared.
func (o Observation[O]) compared() bool {
	return o.Phase == PhaseAvailable || o.Phase == PhaseDegraded || o.Phase == PhaseFailed
}

// Missing says that the thing does not exist.
func Missing[O any]() Observation[O] { return Observation[O]{Phase: PhaseMissing} }

// Available says that the thing is there and can be used. mark is what it carries; nil if
// its API cannot hold marks.
func Available[O any](have O, mark Mark) Observation[O] {
	return Observation[O]{Phase: PhaseAvailable, Have: have, Mark: mark}
}

// Busy says that its system is at work on the thing: p is Creating, Updating or Deleting.
func Busy[O any](p Phase, have O, mark Mark) Observation[O] {
	return Observation[O]{Phase: p, Have: have, Mark: mark}
}

// Degraded says that the thing can be changed but is not fully usable.
func Degraded[O any](have O, mark Mark, reason, message string) Observation[O] {
	return Observation[O]{Phase: PhaseDegraded, Have: have, Mark: mark, Reason: reason, Message: message}
}

// Failed says that its system gave up on the thing.
func Failed[O any](have O, mark Mark, reason, message string, recoverable bool) Observation[O] {
	return Observation[O]{
		Phase: PhaseFailed, Have: have, Mark: mark,
		Reason: reason, Message: message, Recoverable: recoverable,
	}
}

// Phases translates an API's own words for the state of a thing.
type Phases map[string]Phase

// ByStatus makes an observation of an API that tells a thing's state in one word. Several
// words may mean one phase. A word that phases does not hold counts as
// [PhaseDegraded], with the word in the message, so that a new word of the API is seen and
// never taken for usable.
func ByStatus[O any](have O, mark Mark, word, message string, phases Phases) Observation[O] {
	o := Observation[O]{Have: have, Mark: mark, External: word, Message: message}
	p, known := phases[word]
	if !known {
		o.Phase, o.Reason = PhaseDegraded, "UnknownStatus"
		o.Message = "the external system reports the status \"" + word + "\", which this operator does not know"
		return o
	}
	o.Phase = p
	if p == PhaseFailed || p == PhaseDegraded {
		o.Reason = "External" + string(p)
	}
	return o
}

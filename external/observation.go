package external

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
)

// Phase is where an external resource stands in its life. The set is closed.
type Phase string

const (
	// PhaseMissing: it does not exist.
	PhaseMissing Phase = "Missing"
	// PhaseCreating, PhaseUpdating and PhaseDeleting: its API is at work on it.
	PhaseCreating Phase = "Creating"
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	// PhaseAvailable: it can be used.
	PhaseAvailable Phase = "Available"
	// PhaseDegraded: it exists and can be changed, but is not fully usable.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed: its API gave up on it.
	PhaseFailed Phase = "Failed"
)

// Observation is what one read of an external resource showed. [Missing], [Available] and
// [ByStatus] make the usual ones; the others are literals:
//
//	external.Observation[*Database]{Phase: external.PhaseCreating, Have: db, Mark: mark}
type Observation[O any] struct {
	// Phase is where the external resource stands. The empty phase is a mistake of the driver
	// and fails the pass.
	Phase Phase
	// Have is the external resource as its API returned it; the zero value when Missing.
	Have O
	// Mark is the ownership mark found on the external resource. Nil and empty mean that it
	// carries none, and that it is not ours; an API that cannot hold marks is declared by
	// [Options.Unmarked].
	Mark Mark
	// External is the API's own word for the state, shown in status. Empty means that it
	// has none.
	External string
	// Reason (CamelCase) and Message explain PhaseDegraded and PhaseFailed. Empty means that
	// there is nothing more to say.
	Reason, Message string
	// Recoverable says, for PhaseFailed, that trying again can help.
	Recoverable bool
	// PollAfter is a hint when to observe again while the API is at work. Zero means 1 s,
	// growing to 30 s. It counts as at least 100 ms, growing to 5 s where the work never ends,
	// and at most the drift interval, or 10 min where there is none.
	PollAfter time.Duration
}

// Missing says that the external resource does not exist.
func Missing[O any]() Observation[O] { return Observation[O]{Phase: PhaseMissing} }

// Available says that the external resource exists and can be used. mark is what it carries;
// nil if its API cannot hold marks.
func Available[O any](have O, mark Mark) Observation[O] {
	return Observation[O]{Phase: PhaseAvailable, Have: have, Mark: mark}
}

// Phases translates an API's own words for the state of an external resource.
type Phases map[string]Phase

// ByStatus completes the observation of an API that reports the state in one word:
// o.External becomes o.Phase. Several words may mean one phase. A word that phases does not
// hold counts as [PhaseDegraded], with the word in the message, so that a new word of the API
// is seen and never taken for usable.
//
//	external.ByStatus(phases, external.Observation[*Database]{External: db.Status, Have: db, Mark: mark})
func ByStatus[O any](phases Phases, o Observation[O]) Observation[O] {
	p, known := phases[o.External]
	if !known {
		o.Phase, o.Reason = PhaseDegraded, "UnknownStatus"
		o.Message = "the external system reports the status \"" + o.External + "\", which this operator does not know"
		return o
	}
	o.Phase = p
	if o.Reason == "" && (p == PhaseFailed || p == PhaseDegraded) {
		o.Reason = "External" + string(p)
	}
	return o
}

// inner is o as the engine has it.
func (o Observation[O]) inner() engine.Observation {
	return engine.Observation{
		Phase: decide.Phase(o.Phase), Have: o.Have, Mark: o.Mark, External: o.External, Reason: o.Reason, Message: o.Message,
		Recoverable: o.Recoverable, PollAfter: o.PollAfter,
	}
}

package external

import (
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
)

// Phase is a phase in the life of an external resource. The set is closed.
type Phase string

const (
	// PhaseMissing: the resource does not exist.
	PhaseMissing Phase = "Missing"
	// PhaseCreating, PhaseUpdating and PhaseDeleting: the API is creating, updating or deleting it.
	PhaseCreating Phase = "Creating"
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	// PhaseInProgress: the API is working on it, and does not say whether it is creating or updating it.
	PhaseInProgress Phase = "InProgress"
	// PhaseAvailable: it can be used.
	PhaseAvailable Phase = "Available"
	// PhaseDegraded: it exists and can be changed, but is not fully usable.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed: the API reports that it has failed.
	PhaseFailed Phase = "Failed"
)

// Observation is the state of an external resource as a read or an answer showed it. [Missing],
// [Available] and [ByStatus] return the usual observations. Others are literals:
//
//	external.Observation[*Database]{Phase: external.PhaseCreating, Have: db, Mark: mark}
type Observation[O any] struct {
	// Phase is required. A pass in which it is empty fails.
	Phase Phase
	// Have is the external resource as the API returned it. It is the zero value if the resource does
	// not exist.
	Have O
	// Mark is the ownership mark on the external resource. Empty means that there is none, so the
	// resource is not ours. If the API cannot store marks, set [Options.Unmarked].
	Mark Mark
	// External is the API's own name of the state, which the status shows. Empty means that the API has
	// none.
	External string
	// Reason, a CamelCase word, and Message explain PhaseDegraded and PhaseFailed; Message also explains PhaseInProgress. Both may be empty.
	Reason, Message string
	// Recoverable means, for PhaseFailed, that another attempt may succeed.
	Recoverable bool
	// PollAfter is when to observe again while the API is creating, updating or deleting the resource.
	// Zero means 1 s, growing to 30 s. The delay is at least 100 ms, growing to 5 s if the operation does
	// not end, and at most the drift interval, or 10 min if there is none.
	PollAfter time.Duration
	// Details are connection details as the API shows them now, by key; see [Connectable].
	Details map[string][]byte
}

// Missing returns the observation of a resource that does not exist.
func Missing[O any]() Observation[O] { return Observation[O]{Phase: PhaseMissing} }

// Available returns the observation of a resource that exists and can be used. mark is its ownership
// mark, or nil if it has none.
func Available[O any](have O, mark Mark) Observation[O] {
	return Observation[O]{Phase: PhaseAvailable, Have: have, Mark: mark}
}

// Phases maps an API's own names of the state of a resource to phases.
type Phases map[string]Phase

// ByStatus returns o with the phase that phases has for o.External. It is for APIs that report the
// state in one word. A word that phases does not contain becomes [PhaseDegraded], and the message names
// the word, so that a new state of the API is noticed and never counts as usable.
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

// inner converts o for the engine.
func (o Observation[O]) inner() engine.Observation {
	return engine.Observation{
		Phase: decide.Phase(o.Phase), Have: o.Have, Mark: o.Mark, External: o.External, Reason: o.Reason, Message: o.Message,
		Recoverable: o.Recoverable, PollAfter: o.PollAfter, Details: o.Details,
	}
}

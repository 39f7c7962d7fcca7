package trace

import "time"

// Redacted replaces a value that must not be shown.
const Redacted = "(sensitive)"

// Event is something that happened in a pass. The set of types is closed: only this package can
// add to it, so that a type switch can be exhaustive.
type Event interface{ event() }

// Start is the first event of a pass.
type Start struct {
	// Generation and ResourceVersion are those of the object that was read.
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Attempt is the number of retries after failures. It is 0 on the first try.
	Attempt int `json:"attempt,omitempty"`
	// Deleting reports whether the object is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Vanished reports whether the object is already gone despite its finalizer, so that the
	// pass works with its last version.
	Vanished bool `json:"vanished,omitempty"`
}

// Decision says what the pass does next, and why.
type Decision struct {
	// Rule is the row of the decision table that applied, for example "D-13".
	Rule string `json:"rule,omitempty"`
	// Action is what will be done, in one or two words.
	Action string `json:"action"`
	// Because is the reason for the decision.
	Because string `json:"because,omitempty"`
}

// Call is a request to an external API.
type Call struct {
	// Op is the operation, for example "observe" or "create".
	Op string `json:"op"`
	// Target identifies the external resource in its API.
	Target string `json:"target,omitempty"`
	// Mutating reports whether the call can change anything.
	Mutating bool `json:"mutating,omitempty"`
	// Result summarizes the answer in a word: "Available", "Missing", "ok".
	Result string `json:"result,omitempty"`
	// Err is empty on success.
	Err  string        `json:"err,omitempty"`
	Took time.Duration `json:"took,omitempty"`
}

// Drift is a difference between the spec and the observed external resource.
type Drift struct {
	Path   string `json:"path"`
	Want   string `json:"want"`
	Have   string `json:"have"`
	Effect string `json:"effect"`
}

// Write is a write request to the Kubernetes API.
type Write struct {
	// Verb is patch, apply, create, update or delete.
	Verb        string `json:"verb"`
	Subresource string `json:"subresource,omitempty"`
	// Fields are the paths that the request carries, without values.
	Fields []string `json:"fields,omitempty"`
	// ResourceVersion is that of the object after the write.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Err             string `json:"err,omitempty"`
}

// Transition is a change of an object's state as shown in its status.
type Transition struct {
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// End is the last event of a pass.
type End struct {
	// Outcome is Done, Again, After, WaitFor, Fail, Terminal, Removed or Keep.
	Outcome string `json:"outcome"`
	Err     string `json:"err,omitempty"`
	// Again is the delay until the next pass if no event triggers one earlier. Zero means
	// that only an event does.
	Again time.Duration `json:"again,omitempty"`
	Took  time.Duration `json:"took,omitempty"`
}

func (Start) event()      {}
func (Decision) event()   {}
func (Call) event()       {}
func (Drift) event()      {}
func (Write) event()      {}
func (Transition) event() {}
func (End) event()        {}

package trace

import "time"

// Redacted stands in for a value that must not be shown.
const Redacted = "(sensitive)"

// Event is one thing that happened in a pass. The set is closed: only this package adds
// to it, so that a switch over it can be exhaustive.
type Event interface{ event() }

// Start opens a pass.
type Start struct {
	// Generation and ResourceVersion are those of the object as read.
	Generation      int64  `json:"generation,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Attempt is 0 on a first try and counts retries after failures.
	Attempt int `json:"attempt,omitempty"`
	// Deleting tells a pass that cleans up.
	Deleting bool `json:"deleting,omitempty"`
	// Vanished tells that the object is gone, past its finalizer, and that the pass works from
	// its last version.
	Vanished bool `json:"vanished,omitempty"`
}

// Decision is a choice made from recorded facts.
type Decision struct {
	// Rule names the row of the decision table, for example "E13".
	Rule string `json:"rule,omitempty"`
	// Action is what will be done, in one or two words.
	Action string `json:"action"`
	// Because is the fact that decided.
	Because string `json:"because,omitempty"`
}

// Call is one request to something outside the cluster.
type Call struct {
	// Op is the operation: observe, create, update, delete, poll.
	Op string `json:"op"`
	// Target is the thing's identity there.
	Target string `json:"target,omitempty"`
	// Mutating tells calls that can change the outside from reads.
	Mutating bool `json:"mutating,omitempty"`
	// Result is a word for the answer: "Available", "Missing", "ok".
	Result string `json:"result,omitempty"`
	// Err is empty on success.
	Err  string        `json:"err,omitempty"`
	Took time.Duration `json:"took,omitempty"`
}

// Drift is a difference between what is wanted and what was found outside.
type Drift struct {
	Path   string `json:"path"`
	Want   string `json:"want"`
	Have   string `json:"have"`
	Effect string `json:"effect"`
}

// Write is one write request to the Kubernetes API.
type Write struct {
	// Verb is patch, apply, create, update or delete.
	Verb        string `json:"verb"`
	Subresource string `json:"subresource,omitempty"`
	// Fields are the paths that the request carries, without values.
	Fields []string `json:"fields,omitempty"`
	// ResourceVersion is the one the write produced.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Err             string `json:"err,omitempty"`
}

// Transition is a change of an object's state as people see it.
type Transition struct {
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// End closes a pass.
type End struct {
	// Outcome is Done, Again, After, WaitFor, Fail, Terminal, Removed or Keep.
	Outcome string `json:"outcome"`
	Err     string `json:"err,omitempty"`
	// Again is when the object is visited next without an event; zero means only on one.
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

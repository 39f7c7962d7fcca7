package graph

// Key identifies a node within its graph.
type Key string

// Node is what is desired and known of one node. Waves and ranks are compared, not counted: any
// numbers will do, and the lower come first.
type Node struct {
	Key Key
	// Wanted reports that the node is part of the graph as it is desired. A node that is not wanted
	// is only recorded, and is to go.
	Wanted bool
	// Apply is the wave in which the node is created and changed. Delete is the wave in which it goes
	// when it is no longer wanted; the two are independent of each other.
	Apply, Delete int
	// Purge is the wave at whose end the node has done its work and is deleted. Nil means that it
	// stays. A wave beyond the last one is the last one.
	Purge *int
	// Rank orders the attempts to apply the nodes of a wave, and DeleteRank those to delete them.
	// Nodes of one rank are attempted at the same time.
	Rank, DeleteRank int
	// Needs are the nodes that must be ready before this one is applied. When both are no longer
	// wanted, they stay until this one is gone.
	Needs []Key
	// Orphan reports that the node is released when it is no longer wanted, not deleted.
	Orphan bool
	Facts
}

// Facts are what is known of a node. The zero value means that nothing is known, and nothing is done.
type Facts struct {
	// Recorded reports that a durable record leads to the node, even after a crash, and says how it
	// goes: its Delete, DeleteRank, Needs and Orphan. A node whose record says otherwise is not
	// recorded yet.
	Recorded bool
	// Presence is that of the node itself. What has its name and belongs to another is not the node,
	// nor is a node that was released: both count as Absent.
	Presence Presence
	// Change is what brings the node to its desired state. It has no meaning while the node is
	// absent and not Completed.
	Change Change
	// Applied reports that the present desired state was applied before. What differs from it, or is
	// missing, is drift.
	Applied bool
	// Health is that of the node as it is.
	Health Health
	// Completed reports that the node is recorded as having done its work. It is purged, and not
	// created again, until there is a Change that is not drift, or it is to stay (no Purge).
	Completed bool
	// Ended reports that the node is recorded as having ended by itself, as a job does. It may be gone, and
	// is not created again, until there is a Change that is not drift. Of a node that is purged, only
	// Completed counts.
	Ended bool
	// Refused says why nothing may be done to the node, for example because it belongs to another.
	// Empty means that there is no reason.
	Refused string
	// Held says why the node must not be deleted now. Empty means that there is no reason.
	Held string
	// Tried reports that an attempt failed in this pass. The node is not tried again in this pass.
	Tried bool
}

// Presence reports whether a node exists.
type Presence int

// Unknown presence means that nothing is done. Leaving is the presence of a node whose deletion has
// begun and not ended.
const (
	Unknown Presence = iota
	Absent
	Present
	Leaving
)

// Change is what brings a node that exists to its desired state.
type Change int

// Recreate means that the node is deleted and created again.
const (
	NoChange Change = iota
	NeedsUpdate
	NeedsRecreate
)

// Health reports whether a node does its work.
type Health int

// A node is ready when its health is Current and nothing of it is to be changed.
const (
	HealthUnknown Health = iota
	InProgress
	Failed
	Current
)

// Action is what is done to a node.
type Action int

// The actions. What each one achieves must be among the facts that are given next.
const (
	// None means that nothing is to be done but to wait.
	None Action = iota
	// Record writes a durable record that leads to the node.
	Record
	// Create creates the node.
	Create
	// Update changes the node to its desired state.
	Update
	// Recreate deletes the node so that it can be created again. Create follows when it is absent.
	Recreate
	// Complete records that the node has done its work. Purge follows when that is durable.
	Complete
	// Purge deletes a completed node and keeps its record.
	Purge
	// Delete deletes a node that is no longer wanted.
	Delete
	// Release gives up a node without deleting it.
	Release
	// Forget drops the record of a node that is gone.
	Forget
)

// String returns the action's name in lower case.
func (a Action) String() string {
	switch a {
	case None:
		return "none"
	case Record:
		return "record"
	case Create:
		return "create"
	case Update:
		return "update"
	case Recreate:
		return "recreate"
	case Complete:
		return "complete"
	case Purge:
		return "purge"
	case Delete:
		return "delete"
	case Release:
		return "release"
	case Forget:
		return "forget"
	}
	return "unknown"
}

// Wait names a node that is waited for, and what it lacks, as in "waiting for web: not ready".
type Wait struct {
	Key Key
	Why string
}

// Step is what is to be done to a node, or what it waits for.
type Step struct {
	Key    Key
	Action Action
	// Turn orders the steps that can be done now: those of one turn at the same time, the lower
	// first. No step of a turn depends on another's success.
	Turn int
	// On names what the step waits for: the first causes, of which each can be found by looking at
	// the node it names alone. It is the node itself if it waits for nothing else. At most eight are
	// named. Empty means that the step can be done now.
	On []Wait
}

// Plan is what [Decide] returns.
type Plan struct {
	// Steps are what can be done now, in the order of their turns.
	Steps []Step
	// Waiting are the nodes that are not as they should be and for which nothing can be done now.
	// Their Action is what is to be done when the wait is over, None if that is not known yet or if
	// nothing is to be done.
	Waiting []Step
	// Settled reports that all wanted nodes are ready and what is to be purged is gone. Nodes that
	// are no longer wanted may be left.
	Settled bool
	// Ready reports that the plan is Settled and that no node is left that is not wanted. If none is
	// wanted, everything is gone.
	Ready bool
}

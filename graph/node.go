package graph

// Key identifies a node within its graph.
type Key string

// Node is the desired state of a node, and what is known about it. Waves and ranks are ordered by their
// numbers, which may have gaps.
type Node struct {
	Key Key
	// Wanted reports that the node should exist. A node that is not wanted is known from its record and
	// is deleted.
	Wanted bool
	// Apply is the wave in which the node is created and changed. Delete is the wave in which it is
	// deleted when it is no longer wanted. The two are independent of each other.
	Apply, Delete int
	// Purge is the wave at whose end the node is deleted because it has done its work. Nil means that
	// it stays. A number above that of the last wave means the last wave.
	Purge *int
	// Rank orders the attempts to apply the nodes of a wave, and DeleteRank those to delete them.
	// Nodes of one rank are attempted at the same time.
	Rank, DeleteRank int
	// Needs are the nodes that must be ready before this one is applied, and that are deleted after it.
	Needs []Key
	// Orphan reports that the node is released instead of deleted when it is no longer wanted.
	Orphan bool
	Facts
}

// Facts are what is known about a node. The zero value means that nothing is known. Nothing is done then.
type Facts struct {
	// Recorded reports that a durable record of the node exists, with which it can be found and deleted
	// after a crash. The record contains Delete, DeleteRank, Needs and Orphan. If it differs in one of
	// them from the node, Recorded is false.
	Recorded bool
	// Presence says whether the node exists. It is Absent if somebody else owns what has the node's name,
	// and after the node was released.
	Presence Presence
	// Change is what brings the node to its desired state. It has no meaning while the node is
	// absent and not Completed.
	Change Change
	// Applied reports that the present desired state was applied before. A difference is drift then.
	Applied bool
	// Health is the health of the node in its present state.
	Health Health
	// Completed reports that the node is recorded as having done its work. It is purged and not created
	// again, until its desired state changes or Purge is nil.
	Completed bool
	// Ended reports that the node is recorded as having ended by itself, as a job does. It may be gone and is
	// not created again, until its desired state changes. Of a node that is purged, it reports that the node has
	// ended: it is recorded as completed at once, and purged at the end of its wave.
	Ended bool
	// Refused says why nothing may be done to the node, for example because somebody else owns it.
	// Empty means that all actions are allowed.
	Refused string
	// Held says why the node must not be deleted now. Empty means that it may be deleted.
	Held string
	// Tried reports that an attempt failed in this pass. The node is not tried again in this pass.
	Tried bool
}

// Presence reports whether a node exists.
type Presence int

// With presence Unknown, nothing is done. Leaving means that the deletion of the node has begun and not
// ended.
const (
	Unknown Presence = iota
	Absent
	Present
	Leaving
)

// Change is what brings a node that exists to its desired state.
type Change int

// NeedsRecreate means that the node must be deleted and created again.
const (
	NoChange Change = iota
	NeedsUpdate
	NeedsRecreate
)

// Health reports whether a node does its work.
type Health int

// A node is ready when its health is Current and its Change is NoChange.
const (
	HealthUnknown Health = iota
	InProgress
	Failed
	Current
)

// Action is what is done to a node.
type Action int

// The actions. The next facts of the node must contain what an action has achieved.
const (
	// None means to wait.
	None Action = iota
	// Record writes a durable record of the node.
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

// Wait names a node that is waited for, and what it lacks, as the end of a sentence about it, as in "waiting for web: it is not ready".
type Wait struct {
	Key Key
	Why string
}

// Step is an action on a node, and what the action waits for.
type Step struct {
	Key    Key
	Action Action
	// Turn orders the steps that can be done now. Lower turns come first. Steps of one turn do not depend
	// on each other and can be done at the same time.
	Turn int
	// On names the root causes for which the step waits, at most eight. It names the node itself if the
	// cause is its own state. Empty means that the step can be done now.
	On []Wait
}

// Plan is what [Decide] returns.
type Plan struct {
	// Steps can be done now. They are ordered by turn.
	Steps []Step
	// Waiting are nodes that are not in their desired state and for which nothing can be done now. Their
	// Action is the next one after the wait, or None if it is not known or not needed.
	Waiting []Step
	// Settled reports that all wanted nodes are ready and all nodes to be purged are gone. Nodes that
	// are no longer wanted may still exist.
	Settled bool
	// Ready reports that the plan is Settled and that only wanted nodes exist.
	Ready bool
}

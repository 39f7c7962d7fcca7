// Package graph schedules nodes that depend on each other. It decides which nodes may be created,
// changed or deleted now, and what the others wait for. A node can be anything: the caller carries the
// steps out.
//
// The caller describes each [Node]: its desired state (waves, ranks, needs) and what is known about it
// ([Facts]). [Check] finds contradictions in the desired state. [Decide] is a pure function from nodes
// to a [Plan]. [Run] carries a plan out, a bounded number of steps at a time. After each turn it decides
// again, until nothing more can be done now. It does not wait for a node to become ready: the caller runs
// the graph again when something has changed.
//
// The rules:
//
//   - Record first. As long as a wanted node is not recorded, the plan contains only the step Record.
//     No other step is planned for a node without a record.
//   - Waves are barriers. A node is applied when all wanted nodes of lower waves are ready, and those
//     to be purged at the end of these waves are gone. If one of them becomes unready later, waves that
//     have not started wait.
//   - Needs are edges. A node is applied when all nodes that it needs are ready. A failure stops only the
//     nodes that come after it.
//   - Drift is repaired at once. A node whose desired state was applied before ignores waves, and waits only
//     for needed nodes that do not exist.
//   - Ranks order the attempts within a wave. A rank does not wait until the one before it is ready.
//   - Unwanted nodes are deleted when all wanted nodes are ready, or at once if none is wanted. They are
//     deleted wave by wave: each wave starts when the one before it is gone. A node is deleted after the
//     nodes that need it.
//   - Purged nodes have done their work. A node is recorded as completed before it is purged, and is not
//     created again until its desired state changes. That is recorded at the end of its wave, or when the node has
//     ended by itself.
//   - Nodes that ended by themselves, as a job does, are not missed when they are gone. Such a node is created
//     again when its desired state changes.
//
// The Example shows a pass.
package graph

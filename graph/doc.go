// Package graph schedules a set of nodes that depend on each other: what may be created, changed or
// deleted now, and what everything else waits for. It does not know what a node is.
//
// The caller describes each [Node]: what is desired (waves, ranks, needs) and what is known of it
// ([Facts]). [Check] finds contradictions in what is desired. [Decide] is a pure function from nodes
// to a [Plan]. [Run] carries a plan out with a bounded number of steps at a time, and decides again
// after each turn until nothing more can be done now. It never waits for a node to become ready: the
// caller runs the graph again when something has changed.
//
// The rules:
//
//   - Record first. As long as a wanted node is not recorded, the plan is to record, and nothing else.
//     Nothing is ever done to a node without a record.
//   - Waves are barriers. A node is applied when all wanted nodes of lower waves are ready and those
//     that are purged by then are gone. If one of them becomes unready later, waves that have not
//     started do not start.
//   - A node is applied when all that it needs is ready. A failure stops only what comes after it.
//   - Drift is repaired at once. A node whose desired state was applied before is not held by waves,
//     and of what it needs only by what is missing.
//   - Within a wave, ranks order the attempts. No rank waits until another is ready.
//   - Nodes that are no longer wanted go when all wanted nodes are ready, or at once if none is
//     wanted: wave by wave, each when the one before it is gone, and always after what needs them.
//   - A node that is purged has done its work. It is recorded as completed before it is deleted, and
//     is not created again until its desired state changes.
//   - A node that ended by itself, as a job does, is not missed when it is gone. It is created again when
//     its desired state changes.
//
// The Example shows a pass.
package graph

package graph

// completed reports whether a node has done its work and is not to be created again. What has done its
// work is purged, even if it drifted.
func completed(n *Node) bool {
	return n.Purge != nil && n.Completed && (n.Change == NoChange || n.Applied)
}

// purged reports whether a node has done its work and is gone.
func purged(n *Node) bool { return completed(n) && n.Presence == Absent }

// ended reports whether a node ended by itself and is gone, or about to be: nothing is missing.
func ended(n *Node) bool {
	return n.Purge == nil && n.Ended && (n.Change == NoChange || n.Applied) && (n.Presence == Absent || n.Presence == Leaving)
}

// ready reports whether what needs a node may go on.
func ready(n *Node) bool {
	return n.Recorded && (completed(n) || ended(n) || n.Presence == Present && n.Change == NoChange && n.Health == Current && n.Refused == "")
}

// end is the wave at whose end a node is purged. None is purged before it is applied.
func end(n *Node) int { return max(*n.Purge, n.Apply) }

// want decides about a node that is wanted.
func (d *decider) want(i int, n *Node) verdict {
	switch {
	case purged(n):
		return verdict{}
	case completed(n):
		return d.purge(i, Purge)
	case ready(n) && n.Purge == nil:
		return verdict{}
	case ready(n):
		return d.purge(i, Complete)
	}
	if why := obstacle(n); why != "" {
		return verdict{action: missing(n), on: because(n, why)}
	}
	action := missing(n)
	switch {
	case n.Presence == Leaving:
		return verdict{action: action, on: because(n, "is being deleted")}
	case action == None && n.Health == Failed:
		return verdict{on: because(n, "has failed")}
	case action == None:
		return verdict{on: because(n, "is not ready")}
	case action == Recreate && n.Held != "":
		return verdict{action: action, on: because(n, n.Held)}
	}
	return verdict{action: action, on: d.before(n)}
}

// missing is what brings a node to its desired state.
func missing(n *Node) Action {
	switch {
	case n.Presence == Absent || n.Presence == Leaving:
		return Create
	case n.Presence == Unknown:
		return None
	case n.Change == NeedsUpdate:
		return Update
	case n.Change == NeedsRecreate:
		return Recreate
	}
	return None
}

// before returns what must be ready before a node is applied and is not. A node whose desired state was
// applied before is not held by waves, and of what it needs only by what is missing: it repairs drift.
func (d *decider) before(n *Node) []Wait {
	var waits []Wait
	if u := d.unready; u >= 0 && !n.Applied && d.nodes[u].Apply < n.Apply {
		waits = on(waits, d.cause(u))
	}
	if u := d.unpurged; u >= 0 && !n.Applied && end(d.nodes[u]) < n.Apply {
		waits = on(waits, d.cause(u))
	}
	for _, key := range n.Needs {
		i, found := d.index[key]
		switch {
		case !found, !d.nodes[i].Wanted && !d.nodes[i].Recorded:
			waits = on(waits, Wait{key, "is not part of the graph"})
		case !d.nodes[i].Wanted:
			waits = on(waits, Wait{key, "is to be deleted"})
		case ready(d.nodes[i]) || n.Applied && d.nodes[i].Presence == Present:
		default:
			waits = on(waits, d.cause(i))
		}
	}
	return waits
}

// purge decides about a node that has done its work: at the end of its wave that is recorded, then the
// node is deleted. What has ended by itself is recorded at once. What needs it and is purged by then goes first.
func (d *decider) purge(i int, action Action) verdict {
	n := d.nodes[i]
	why := obstacle(n)
	switch {
	case why == "" && n.Presence == Leaving:
		why = "is being deleted"
	case why == "":
		why = n.Held
	}
	if why != "" {
		return verdict{action: action, on: because(n, why)}
	}
	var waits []Wait
	if u := d.unready; u >= 0 && (action == Complete) != n.Ended && d.nodes[u].Apply <= end(n) {
		waits = on(waits, d.cause(u))
	}
	for _, j := range d.purgedFirst[i] {
		if action == Purge && end(d.nodes[j]) <= end(n) {
			waits = on(waits, d.cause(j))
		}
	}
	return verdict{action: action, on: waits}
}

// needers maps nodes that are to be purged to those that need them, are purged too, and are not gone.
func (d *decider) needers() map[int][]int {
	found := map[int][]int{}
	for i, n := range d.nodes {
		if !n.Wanted || n.Purge == nil || purged(n) {
			continue
		}
		for _, key := range n.Needs {
			if j, exists := d.index[key]; exists && i != j && d.nodes[j].Purge != nil {
				found[j] = append(found[j], i)
			}
		}
	}
	return found
}

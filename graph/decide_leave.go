package graph

import (
	"cmp"
	"slices"
)

// exits is the order in which nodes go that are not wanted.
type exits struct {
	// first is the first that is not gone. Negative means none.
	first int
	// waves are those in which nodes go: their own, or a later one if something that needs them goes
	// in that. neededBy are those that need a node and must be gone before it.
	waves    []int
	neededBy [][]int
}

// stays reports whether a node is to go and has not gone.
func stays(n *Node) bool { return !n.Wanted && n.Recorded && n.Presence != Absent }

func newExits(d *decider) exits {
	e := exits{first: -1}
	if !slices.ContainsFunc(d.nodes, stays) {
		return e
	}
	var all []int
	needs := make([][]int, len(d.nodes))
	for i, n := range d.nodes {
		if !stays(n) {
			continue
		}
		all = append(all, i)
		for _, key := range n.Needs {
			if j, found := d.index[key]; found && stays(d.nodes[j]) {
				needs[i] = append(needs[i], j)
			}
		}
	}
	e.postpone(d, components(all, needs), needs)
	e.first = slices.MinFunc(all, func(i, j int) int {
		return cmp.Or(cmp.Compare(e.waves[i], e.waves[j]), cmp.Compare(d.nodes[i].DeleteRank, d.nodes[j].DeleteRank), cmp.Compare(i, j))
	})
	return e
}

// postpone moves each node to the last wave of those that need it. Recorded needs may contradict each
// other: nodes are recorded at different times. Needs win over waves, and those of a cycle do not
// count.
func (e *exits) postpone(d *decider, groups, needs [][]int) {
	e.waves, e.neededBy = make([]int, len(needs)), make([][]int, len(needs))
	for i, n := range d.nodes {
		e.waves[i] = n.Delete
	}
	group := make([]int, len(needs))
	for g, members := range groups {
		for _, i := range members {
			group[i] = g
		}
	}
	for _, members := range slices.Backward(groups) { // what needs a node comes before it
		for _, i := range members {
			for _, j := range needs[i] {
				if group[i] == group[j] {
					continue
				}
				e.neededBy[j] = append(e.neededBy[j], i)
				e.waves[j] = max(e.waves[j], e.waves[i])
			}
		}
	}
}

// wave is the wave in which a node goes.
func (e *exits) wave(i int, n *Node) int {
	if e.waves == nil {
		return n.Delete
	}
	return e.waves[i]
}

// leave decides about a node that is recorded and not wanted.
func (d *decider) leave(i int, n *Node) verdict {
	action := Delete
	switch {
	case n.Presence == Absent:
		action = Forget
	case n.Orphan:
		action = Release
	}
	why := obstacle(n)
	switch {
	case action == Forget && !n.Tried:
		return verdict{action: Forget}
	case why == "" && action == Delete && n.Presence == Leaving:
		why = "is being deleted"
	case why == "" && action == Delete:
		why = n.Held
	}
	if why != "" {
		return verdict{action: action, on: because(n, why)}
	}
	return verdict{action: action, on: d.after(i, n)}
}

// after returns what must be ready, or gone, before a node goes.
func (d *decider) after(i int, n *Node) []Wait {
	var waits []Wait
	if d.unready >= 0 {
		waits = on(waits, d.cause(d.unready))
	}
	if d.unpurged >= 0 {
		waits = on(waits, d.cause(d.unpurged))
	}
	first := d.exits.first
	if d.exits.wave(first, d.nodes[first]) < d.exits.wave(i, n) {
		waits = on(waits, d.cause(first))
	}
	for _, j := range d.exits.neededBy[i] {
		waits = on(waits, d.cause(j))
	}
	return waits
}

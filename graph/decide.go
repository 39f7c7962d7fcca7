package graph

import (
	"cmp"
	"slices"
)

// maxWaits is how many causes a step names.
const maxWaits = 8

// Decide returns what can be done now and what everything else waits for. The order of nodes has no
// influence. Keys must be unique and the graph free of contradictions ([Check]); nodes that need each
// other wait for each other. It costs as much as to sort the nodes and to go through their needs.
func Decide(nodes []Node) Plan {
	d := newDecider(nodes)
	var plan Plan
	var do, wait []place
	plan.Settled, plan.Ready = d.unready < 0 && d.unpurged < 0, true
	for i, n := range d.nodes {
		if !n.Wanted && !n.Recorded {
			continue
		}
		plan.Ready = plan.Ready && n.Wanted
		switch v := d.verdict(i); {
		case len(v.on) > 0:
			wait = append(wait, d.place(i))
		case v.action != None:
			do = append(do, d.place(i))
		}
	}
	plan.Ready = plan.Ready && plan.Settled
	plan.Steps, plan.Waiting = d.steps(do), d.steps(wait)
	return plan
}

// decider holds what the decisions about single nodes need to know of all others. A node is known by
// its index in the order of keys.
type decider struct {
	nodes []*Node
	index map[Key]int
	// unrecorded and unready are the first wanted nodes that are not, in the order of application,
	// and unpurged the first that is to be purged and is not gone, in the order of purging. Negative
	// means none.
	unrecorded, unready, unpurged int
	// purgedFirst are, for nodes that are to be purged, those that are to be purged before them.
	purgedFirst map[int][]int
	exits       exits
	verdicts    []verdict
}

func newDecider(nodes []Node) *decider {
	d := &decider{
		nodes:      make([]*Node, len(nodes)),
		index:      make(map[Key]int, len(nodes)),
		verdicts:   make([]verdict, len(nodes)),
		unrecorded: -1, unready: -1, unpurged: -1,
	}
	for i := range nodes {
		d.nodes[i] = &nodes[i]
	}
	slices.SortFunc(d.nodes, func(a, b *Node) int { return cmp.Compare(a.Key, b.Key) })
	d.nodes = slices.CompactFunc(d.nodes, func(a, b *Node) bool { return a.Key == b.Key })
	for i, n := range d.nodes {
		d.index[n.Key] = i
		if !n.Wanted {
			continue
		}
		if !n.Recorded {
			d.unrecorded = first(d.unrecorded, i, d.applied)
		}
		if !ready(n) {
			d.unready = first(d.unready, i, d.applied)
		}
		if n.Purge != nil && !purged(n) {
			d.unpurged = first(d.unpurged, i, d.purged)
		}
	}
	if d.unpurged >= 0 {
		d.purgedFirst = d.needers()
	}
	d.exits = newExits(d)
	return d
}

// first returns which of two nodes comes first in an order. There is no old one if it is negative.
func first(old, i int, order func(int) place) int {
	if old < 0 || order(i).compare(order(old)) < 0 {
		return i
	}
	return old
}

// verdict is what is to be done to a node, and what that waits for.
type verdict struct {
	asked, answered bool
	action          Action
	on              []Wait
}

func (d *decider) verdict(i int) verdict {
	v := &d.verdicts[i]
	if v.answered {
		return *v
	}
	if v.asked { // only in a graph with a cycle
		return verdict{on: []Wait{{d.nodes[i].Key, "waits for itself"}}}
	}
	v.asked = true
	answer := d.decide(i)
	answer.asked, answer.answered = true, true
	*v = answer
	return answer
}

func (d *decider) decide(i int) verdict {
	n := d.nodes[i]
	switch {
	case d.unrecorded >= 0:
		return d.record(n)
	case n.Wanted:
		return d.want(i, n)
	case n.Recorded:
		return d.leave(i, n)
	}
	return verdict{}
}

// record has everything recorded before anything is done.
func (d *decider) record(n *Node) verdict {
	switch {
	case n.Wanted && !n.Recorded && n.Tried:
		return verdict{action: Record, on: because(n, tried)}
	case n.Wanted && !n.Recorded:
		return verdict{action: Record}
	case n.Wanted && (purged(n) || ready(n) && n.Purge == nil):
		return verdict{}
	}
	return verdict{on: because(d.nodes[d.unrecorded], "is not recorded yet")}
}

// cause returns why a node that is not as it should be is not: the first cause.
func (d *decider) cause(i int) Wait {
	v := d.verdict(i)
	if len(v.on) > 0 {
		return v.on[0]
	}
	return Wait{d.nodes[i].Key, pending(v.action)}
}

const tried = "could not be changed at the last attempt"

// obstacle says why nothing can be done to a node now, whatever is to be done.
func obstacle(n *Node) string {
	switch {
	case n.Presence == Unknown:
		return "is not observed yet"
	case n.Refused != "":
		return n.Refused
	case n.Tried:
		return tried
	}
	return ""
}

func pending(a Action) string {
	switch a {
	case Record:
		return "is not recorded yet"
	case Create:
		return "is not created yet"
	case Update:
		return "is not updated yet"
	case Recreate:
		return "is not recreated yet"
	case Complete, Purge:
		return "is not purged yet"
	case Delete:
		return "is not deleted yet"
	case Release:
		return "is not released yet"
	case None, Forget:
	}
	return "is not ready"
}

func because(n *Node, why string) []Wait { return []Wait{{n.Key, why}} }

// on adds a cause unless it is there or there are enough.
func on(waits []Wait, w Wait) []Wait {
	if len(waits) >= maxWaits || slices.Contains(waits, w) {
		return waits
	}
	return append(waits, w)
}

// place is where a node stands in the order of attempts. The last of ties is its index, the order of keys.
type place struct{ stage, wave, part, rank, index int }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.stage, q.stage), cmp.Compare(p.wave, q.wave),
		cmp.Compare(p.part, q.part), cmp.Compare(p.rank, q.rank), cmp.Compare(p.index, q.index))
}

// applied is a node's place when it is applied, purged when it is purged, after all else of that wave,
// and left when it goes.
func (d *decider) applied(i int) place {
	return place{wave: d.nodes[i].Apply, rank: d.nodes[i].Rank, index: i}
}

func (d *decider) purged(i int) place {
	return place{wave: end(d.nodes[i]), part: 1, rank: d.nodes[i].DeleteRank, index: i}
}

func (d *decider) left(i int) place {
	return place{stage: 1, wave: d.exits.wave(i, d.nodes[i]), rank: d.nodes[i].DeleteRank, index: i}
}

func (d *decider) place(i int) place {
	switch a := d.verdicts[i].action; {
	case !d.nodes[i].Wanted:
		return d.left(i)
	case a == Complete || a == Purge:
		return d.purged(i)
	}
	return d.applied(i)
}

// steps returns the steps at some places in their order.
func (d *decider) steps(places []place) []Step {
	slices.SortFunc(places, place.compare)
	steps := make([]Step, len(places))
	turn := 0
	for at, p := range places {
		v := d.verdicts[p.index]
		if at > 0 && len(v.on) == 0 {
			last := places[at-1]
			if last.index = p.index; last != p {
				turn++
			}
		}
		steps[at] = Step{Key: d.nodes[p.index].Key, Action: v.action, Turn: turn, On: v.on}
	}
	return steps
}

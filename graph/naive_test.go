package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// naive answers for one node what [Decide] answers for all: what may be done to it now. It follows the
// rules word by word and costs what it costs.
type naive []Node

func (g naive) find(key Key) (Node, bool) {
	for _, n := range g {
		if n.Key == key {
			return n, true
		}
	}
	return Node{}, false
}

func (g naive) worked(n Node) bool {
	return n.Recorded && n.Purge != nil && n.Completed && (n.Applied || n.Change == NoChange)
}

func (g naive) ready(n Node) bool {
	works := n.Presence == Present && n.Health == Current && n.Change == NoChange && n.Refused == ""
	gone := n.Presence == Absent || n.Presence == Leaving
	return n.Recorded && (works || g.worked(n) || n.Purge == nil && n.Ended && gone && (n.Applied || n.Change == NoChange))
}

func (g naive) over(n Node) bool { return n.Purge == nil || g.worked(n) && n.Presence == Absent }

func (g naive) end(n Node) int { return max(*n.Purge, n.Apply) }

// all reports whether something holds for all nodes of which something else does.
func (g naive) all(of, holds func(Node) bool) bool {
	for _, n := range g {
		if of(n) && !holds(n) {
			return false
		}
	}
	return true
}

// settled reports whether the waves before one are over.
func (g naive) settled(wave int) bool {
	return g.all(func(m Node) bool { return m.Wanted && m.Apply < wave }, g.ready) &&
		g.all(func(m Node) bool { return m.Wanted && m.Purge != nil && g.end(m) < wave }, g.over)
}

const never = 1 << 30

// may returns what may be done to a node now.
func (g naive) may(n Node) Action {
	switch {
	case n.Tried:
		return None
	case !g.all(func(m Node) bool { return m.Wanted }, func(m Node) bool { return m.Recorded }):
		if n.Wanted && !n.Recorded {
			return Record
		}
		return None
	case !n.Recorded:
		return None
	case !n.Wanted && n.Presence == Absent:
		return Forget
	case n.Presence == Unknown || n.Refused != "":
		return None
	case n.Wanted && (g.worked(n) || g.ready(n)):
		return g.mayPurge(n)
	case n.Wanted:
		return g.mayApply(n)
	}
	return g.mayLeave(n)
}

func (g naive) mayPurge(n Node) Action {
	switch {
	case n.Purge == nil, n.Presence != Present, n.Held != "", n.Refused != "":
		return None
	case !g.worked(n) && n.Ended:
		return Complete
	}
	if !g.worked(n) || n.Ended {
		switch {
		case !g.all(func(m Node) bool { return m.Wanted && m.Apply <= g.end(n) }, g.ready):
			return None
		case !g.worked(n):
			return Complete
		}
	}
	before := func(m Node) bool {
		return m.Wanted && m.Key != n.Key && m.Purge != nil && g.end(m) <= g.end(n) && slices.Contains(m.Needs, n.Key)
	}
	if g.all(before, g.over) {
		return Purge
	}
	return None
}

func (g naive) mayApply(n Node) Action {
	for _, key := range n.Needs {
		m, found := g.find(key)
		repairs := n.Applied && m.Presence == Present
		if !found || !m.Wanted || !g.ready(m) && !repairs {
			return None
		}
	}
	switch {
	case !n.Applied && !g.settled(n.Apply), n.Presence == Leaving:
		return None
	case n.Presence == Absent:
		return Create
	case n.Change == NeedsUpdate:
		return Update
	case n.Change == NeedsRecreate && n.Held == "":
		return Recreate
	}
	return None
}

func (g naive) mayLeave(n Node) Action {
	if !g.settled(never) {
		return None
	}
	for _, m := range g {
		switch {
		case m.Wanted || !m.Recorded || m.Presence == Absent:
		case g.wave(m, nil) < g.wave(n, nil):
			return None
		case slices.Contains(m.Needs, n.Key) && !g.reaches(n, m, nil):
			return None
		}
	}
	switch {
	case n.Orphan:
		return Release
	case n.Held != "" || n.Presence == Leaving:
		return None
	}
	return Delete
}

// reaches reports whether a node that is to go needs another, alone or through others.
func (g naive) reaches(n, other Node, seen []Key) bool {
	if slices.Contains(seen, n.Key) {
		return false
	}
	for _, key := range n.Needs {
		m, found := g.find(key)
		if !found || m.Wanted || !m.Recorded || m.Presence == Absent {
			continue
		}
		if m.Key == other.Key || g.reaches(m, other, append(slices.Clone(seen), n.Key)) {
			return true
		}
	}
	return false
}

// wave is the last of a node's own and of those of all that need it, unless it needs them as well.
func (g naive) wave(n Node, seen []Key) int {
	wave := n.Delete
	for _, m := range g {
		if m.Wanted || !m.Recorded || m.Presence == Absent || slices.Contains(seen, m.Key) {
			continue
		}
		if slices.Contains(m.Needs, n.Key) && !g.reaches(n, m, nil) {
			wave = max(wave, g.wave(m, append(slices.Clone(seen), n.Key)))
		}
	}
	return wave
}

// anything returns nodes with any facts, not only those that can come about.
func anything(rng *rand.Rand) []Node {
	nodes := make([]Node, 1+rng.IntN(7))
	likely := func(n int) bool { return rng.IntN(n) > 0 }
	quiet, wanted, recorded := likely(2), rng.IntN(4), likely(4)
	for i := range nodes {
		n := &nodes[i]
		n.Key = Key(rune('a' + i))
		n.Wanted = rng.IntN(3) < wanted
		n.Apply, n.Delete, n.Rank, n.DeleteRank = rng.IntN(3), rng.IntN(3), rng.IntN(2), rng.IntN(2)
		if !likely(4) {
			n.Purge = new(rng.IntN(4))
		}
		for range rng.IntN(3) {
			n.Needs = append(n.Needs, Key(rune('a'+rng.IntN(len(nodes)+1))))
		}
		n.Orphan = !likely(4)
		n.Facts = Facts{
			Recorded: recorded || likely(5), Presence: Presence(rng.IntN(4)), Health: Current,
			Applied: !likely(3), Completed: !likely(2), Ended: !likely(3),
		}
		if quiet && likely(3) {
			n.Presence = Present
		}
		if !quiet || !likely(3) {
			n.Change, n.Health = Change(rng.IntN(3)), Health(rng.IntN(4))
		}
		if !likely(8) {
			n.Refused = "belongs to another"
		}
		if !likely(8) {
			n.Held = "in use"
		}
		n.Tried = !likely(8)
	}
	return nodes
}

// TestDecideNaive compares decisions about any facts with those of [naive], both ways: nothing is done
// that the rules forbid, and everything they allow.
func TestDecideNaive(t *testing.T) {
	seen := map[Action]int{}
	for seed := range uint64(40_000) {
		nodes := anything(rand.New(rand.NewPCG(seed, 1)))
		plan := Decide(nodes)
		got, want := map[Key]Action{}, map[Key]Action{}
		for _, s := range plan.Steps {
			got[s.Key] = s.Action
			seen[s.Action]++
		}
		left := false
		for _, n := range nodes {
			if a := naive(nodes).may(n); a != None {
				want[n.Key] = a
			}
			left = left || !n.Wanted && n.Recorded
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: steps (-naive +got):\n%s\n%s", seed, diff, show(nodes))
		}
		settled := naive(nodes).settled(never)
		if plan.Settled != settled || plan.Ready != (settled && !left) {
			t.Fatalf("seed %d: settled %v, ready %v; want %v, %v\n%s", seed, plan.Settled, plan.Ready, settled, settled && !left, show(nodes))
		}
		if problem := explains(nodes, plan); problem != "" {
			t.Fatalf("seed %d: %s\n%s", seed, problem, show(nodes))
		}
	}
	for a := Record; a <= Forget; a++ {
		if seen[a] < 100 {
			t.Errorf("%s was decided %d times; the nodes are too rarely such", a, seen[a])
		}
	}
}

// explains checks that each node is as it should be, is in the plan, or waits for a first cause: for a
// node that can be named without naming another.
func explains(nodes []Node, plan Plan) string {
	steps := map[Key]Step{}
	for _, s := range slices.Concat(plan.Steps, plan.Waiting) {
		if _, twice := steps[s.Key]; twice {
			return fmt.Sprintf("%s is in the plan twice", s.Key)
		}
		steps[s.Key] = s
	}
	for _, n := range nodes {
		s, found := steps[n.Key]
		asItShould := n.Wanted && naive(nodes).ready(n) && naive(nodes).over(n) || !n.Wanted && !n.Recorded
		if found == asItShould {
			return fmt.Sprintf("%s is in the plan: %v", n.Key, found)
		}
		for _, w := range s.On {
			m, exists := naive(nodes).find(w.Key)
			cause := steps[w.Key]
			switch {
			case w.Why == "":
				return fmt.Sprintf("%s waits for %s and does not say why", n.Key, w.Key)
			case w.Why == "is not part of the graph" && (!exists || !m.Wanted && !m.Recorded):
			case w.Why == "is to be deleted" && !m.Wanted:
			case w.Why == "waits for itself": // only with a cycle
			case len(cause.On) == 0 && cause.Action != None:
			case len(cause.On) == 0 || cause.On[0].Key != w.Key:
				return fmt.Sprintf("%s waits for %s, which is not a first cause: %v", n.Key, w.Key, cause)
			}
		}
	}
	return ""
}

func show(nodes []Node) string {
	var lines string
	for _, n := range nodes {
		lines += fmt.Sprintf("%+v", n)
		if n.Purge != nil {
			lines += fmt.Sprintf(" purge=%d", *n.Purge)
		}
		lines += "\n"
	}
	return lines
}

// TestDecideOrder compares the plans of the same nodes in another order.
func TestDecideOrder(t *testing.T) {
	for seed := range uint64(3_000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		nodes := anything(rng)
		want, fault := Decide(nodes), fmt.Sprint(Check(nodes))
		rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		if diff := cmp.Diff(want, Decide(nodes)); diff != "" {
			t.Fatalf("seed %d: another order, another plan (-want +got):\n%s", seed, diff)
		}
		if got := fmt.Sprint(Check(nodes)); got != fault {
			t.Fatalf("seed %d: another order, another error:\n%s\n%s", seed, fault, got)
		}
	}
}

package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check returns all contradictions among wanted nodes: a key that occurs twice, nodes that need each
// other, a need that is not a wanted node, a need that is applied in a later wave or deleted in an earlier
// one, and a node that is purged before it is applied. Nodes that are no longer wanted are not checked,
// because [Decide] can delete them in any case. The error does not depend on the order of nodes.
func Check(nodes []Node) error {
	wanted, twice, problems := unique(nodes)
	index := map[Key]int{}
	for i, n := range wanted {
		index[n.Key] = i
	}
	all, needs := make([]int, len(wanted)), make([][]int, len(wanted))
	for i, n := range wanted {
		all[i] = i
		if n.Purge != nil && *n.Purge < n.Apply {
			problems = append(problems, fmt.Errorf("%q is purged in wave %d, before wave %d in which it is applied", n.Key, *n.Purge, n.Apply))
		}
		for _, key := range slices.Compact(slices.Sorted(slices.Values(n.Needs))) {
			j, found := index[key]
			switch {
			case twice[key]:
				continue
			case !found:
				problems = append(problems, fmt.Errorf("%q needs %q, which is not part of the graph", n.Key, key))
				continue
			}
			needs[i] = append(needs[i], j)
			problems = append(problems, order(n, wanted[j])...)
		}
	}
	for _, c := range cycles(all, needs) {
		names := make([]string, len(c))
		for at, i := range c {
			names[at] = string(wanted[i].Key)
		}
		problems = append(problems, fmt.Errorf("these need each other: %s", strings.Join(names, " → ")))
	}
	return errors.Join(problems...)
}

// Cycles returns a shortest cycle of each group of wanted nodes that need each other. It starts and ends with
// the same key. [Check] reports them, too.
func Cycles(nodes []Node) [][]Key {
	wanted, _, _ := unique(nodes)
	index := map[Key]int{}
	for i, n := range wanted {
		index[n.Key] = i
	}
	all, needs := make([]int, len(wanted)), make([][]int, len(wanted))
	for i, n := range wanted {
		all[i] = i
		for _, key := range n.Needs {
			if j, found := index[key]; found {
				needs[i] = append(needs[i], j)
			}
		}
		slices.Sort(needs[i])
	}
	var found [][]Key
	for _, c := range cycles(all, needs) {
		keys := make([]Key, len(c))
		for at, i := range c {
			keys[at] = wanted[i].Key
		}
		found = append(found, keys)
	}
	return found
}

// unique returns the wanted nodes in the order of their keys without those whose keys occur more than
// once: these keys are returned as well, with an error for each.
func unique(nodes []Node) (wanted []*Node, twice map[Key]bool, problems []error) {
	known := make(map[Key]bool, len(nodes))
	twice = map[Key]bool{}
	for i := range nodes {
		key := nodes[i].Key
		if known[key] {
			twice[key] = true
		}
		known[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(twice)) {
		problems = append(problems, fmt.Errorf("%q occurs more than once", key))
	}
	for i := range nodes {
		if n := &nodes[i]; n.Wanted && !twice[n.Key] {
			wanted = append(wanted, n)
		}
	}
	slices.SortFunc(wanted, func(a, b *Node) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return wanted, twice, problems
}

// order returns how the waves of a node contradict those of what it needs.
func order(n, need *Node) []error {
	var problems []error
	if need.Apply > n.Apply {
		problems = append(problems, fmt.Errorf("%q (applied in wave %d) needs %q, which is applied later (wave %d)",
			n.Key, n.Apply, need.Key, need.Apply))
	}
	if need.Delete < n.Delete {
		problems = append(problems, fmt.Errorf("%q (deleted in wave %d) needs %q, which is deleted earlier (wave %d)",
			n.Key, n.Delete, need.Key, need.Delete))
	}
	return problems
}

package graph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Check returns all contradictions in what is desired: a key that occurs twice, nodes that need each
// other, a need that is not a wanted node or that is applied in a later wave or deleted in an earlier
// one, a node that is purged before it is applied. Only wanted nodes are checked: the others are on
// their way out, and [Decide] finds a way whatever is recorded of them. The error is the same for any
// order of nodes.
func Check(nodes []Node) error {
	sorted := make([]*Node, len(nodes))
	for i := range nodes {
		sorted[i] = &nodes[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Node) int { return strings.Compare(string(a.Key), string(b.Key)) })
	var problems []error
	index := map[Key]int{}
	for i, n := range sorted {
		if i > 0 && n.Key == sorted[i-1].Key {
			if i < 2 || n.Key != sorted[i-2].Key {
				problems = append(problems, fmt.Errorf("%q occurs more than once", n.Key))
			}
			continue
		}
		if n.Wanted {
			index[n.Key] = i
		}
	}
	needs := make([][]int, len(sorted))
	for _, i := range slices.Sorted(maps.Values(index)) {
		n := sorted[i]
		if n.Purge != nil && *n.Purge < n.Apply {
			problems = append(problems, fmt.Errorf("%q is purged in wave %d, before wave %d in which it is applied", n.Key, *n.Purge, n.Apply))
		}
		for _, key := range slices.Compact(slices.Sorted(slices.Values(n.Needs))) {
			j, found := index[key]
			if !found {
				problems = append(problems, fmt.Errorf("%q needs %q, which is not part of the graph", n.Key, key))
				continue
			}
			needs[i] = append(needs[i], j)
			problems = append(problems, order(n, sorted[j])...)
		}
	}
	for _, c := range cycles(slices.Sorted(maps.Values(index)), needs) {
		names := make([]string, len(c))
		for at, i := range c {
			names[at] = string(sorted[i].Key)
		}
		problems = append(problems, fmt.Errorf("these need each other: %s", strings.Join(names, " → ")))
	}
	return errors.Join(problems...)
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

package graph

import (
	"math"
	"slices"
)

// components returns the groups of nodes that reach each other by their needs, alone or together. A
// group comes after all groups that it needs. (Tarjan's algorithm.)
func components(nodes []int, needs [][]int) [][]int {
	var groups [][]int
	var stack []int
	number, low, seen := make([]int, len(needs)), make([]int, len(needs)), 0
	var visit func(i int)
	visit = func(i int) {
		seen++
		number[i], low[i] = seen, seen
		stack = append(stack, i)
		for _, j := range needs[i] {
			if number[j] == 0 {
				visit(j)
			}
			low[i] = min(low[i], low[j])
		}
		if low[i] < number[i] {
			return
		}
		var group []int
		for low[i] != math.MaxInt {
			last := len(stack) - 1
			group, stack, low[stack[last]] = append(group, stack[last]), stack[:last], math.MaxInt
		}
		slices.Sort(group)
		groups = append(groups, group)
	}
	for _, i := range nodes {
		if number[i] == 0 {
			visit(i)
		}
	}
	return groups
}

// cycles returns a shortest cycle of each group of nodes that need each other. It starts and ends with
// the group's first node that has one.
func cycles(nodes []int, needs [][]int) [][]int {
	var found [][]int
	for _, group := range components(nodes, needs) {
		if len(group) > 1 || slices.Contains(needs[group[0]], group[0]) {
			found = append(found, cycle(group, needs))
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found
}

// cycle returns a shortest way from a group's first node back to itself.
func cycle(group []int, needs [][]int) []int {
	start := group[0]
	members := map[int]bool{}
	for _, i := range group {
		members[i] = true
	}
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, j := range needs[i] {
			if _, seen := from[j]; seen || !members[j] {
				continue
			}
			from[j] = i
			queue = append(queue, j)
		}
		if last, back := from[start]; back {
			way := []int{start}
			for ; last != start; last = from[last] {
				way = append(way, last)
			}
			way = append(way, start)
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

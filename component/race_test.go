//go:build race

package component_test

// killsPlayed is n if each n-th kill of a sweep is played. Under the race detector the operator needs six times the
// processor time, and does the same between all kills.
func killsPlayed() int { return 5 }

// racing reports whether the race detector is on.
const racing = true

//go:build !race

package component_test

import "testing"

// killsPlayed is n if each n-th kill of a sweep is played: each fifth one, before and after writes in turn, or with TRIMTAB_DEEP=1
// each. With -short it is a few. test/fault plays each crash in memory.
func killsPlayed() int {
	switch {
	case deep():
		return 1
	case testing.Short():
		return 15
	}
	return 5
}

// racing reports whether the race detector is on.
const racing = false

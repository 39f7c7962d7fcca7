//go:build !race

package component_test

// killsPlayed is n if each n-th kill of a sweep is played.
const killsPlayed = 1

// racing reports whether the race detector is on.
const racing = false

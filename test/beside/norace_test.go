//go:build !race

package beside

// raced reports whether the race detector is on, which allocates, too.
const raced = false

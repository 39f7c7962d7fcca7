//go:build race

package engine

// walked is the part of a model's walks that a test takes. One goroutine walks, so the race detector has
// nothing to find, but takes five times as long: make test walks all the way without it.
const walked = 0.05

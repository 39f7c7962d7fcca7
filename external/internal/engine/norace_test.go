//go:build !race

package engine

// walked is the part of a model's walks that a test takes.
const walked = 1

// Package fault plays an operator through every crash and every single fault of a scenario,
// inside go test.
package fault

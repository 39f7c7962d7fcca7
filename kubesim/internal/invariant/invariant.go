// Package invariant judges runs: what must hold in every run of every operator, however it is
// disturbed. Each check is a function of the record of a run and of the undisturbed run.
package invariant

import "github.com/trimtab-dev/trimtab/kubesim/internal/history"

// Check is one invariant.
type Check struct {
	// ID is "I2", Title "no leak", Why one sentence: what users lose where it is broken.
	ID, Title, Why string
	// Find returns where r breaks it, at most a few. r may be the undisturbed run itself.
	Find func(r, undisturbed *history.Run) []history.Violation
}

// All returns the checks of one run: I1 to I10, I13, I15, I17.
func All() []Check { return nil }

// Judge returns what r breaks of all of them, the most telling first. It is faster than one
// check after the other.
func Judge(r, undisturbed *history.Run) []history.Violation { return nil }

// Closure returns what the roles allow and no run of an exploration needed (I15).
func Closure(all []*history.Access) []history.Violation { return nil }

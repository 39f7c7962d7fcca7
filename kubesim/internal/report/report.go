// Package report tells people what an exploration found.
package report

import (
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
)

// Input is what is told about one schedule that broke something.
type Input struct {
	// Test is the name of the test function, for the command to replay: "TestDatabase".
	Test string
	// Token is the replay token.
	Token string
	// Run is the run that broke something, Undisturbed the one that it was held against.
	Run, Undisturbed *history.Run
	// Violations are what it broke, the most telling first; at least one.
	Violations []history.Violation
}

// Text tells what was broken, by which schedule, and how to see it again: at most about 40 lines of
// 100 columns.
func Text(in Input) string { return "" }

// Count is a number with its name: 28 "crashes".
type Count struct {
	Name string
	N    int
}

// Exploration is what a summary tells of.
type Exploration struct {
	Scenario string
	// Writes and Calls are those of the undisturbed run.
	Writes, Calls int
	// Schedules are those played, Pruned those left out; zeros are not told.
	Schedules, Pruned []Count
	// Findings is how many schedules broke something.
	Findings int
	// Masked are fields that were not compared because the undisturbed runs differ in them.
	Masked []string
	Took   time.Duration
}

// Summary tells in one line what was explored, and in one more for masked fields.
func Summary(e Exploration) string { return "" }

// Difference tells where two undisturbed runs part; it is empty if they do not.
func Difference(a, b *history.Run) string { return "" }

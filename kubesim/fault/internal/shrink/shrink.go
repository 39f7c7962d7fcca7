// Package shrink makes the schedule of a finding as short as it still breaks the same invariant.
package shrink

import (
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/judge"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Find plays a job and returns what it breaks; false if that is nothing.
type Find func(run.Job) (judge.Finding, bool)

// Replay returns the job that plays a schedule by itself, as its token does. It fails for a schedule that
// cannot be played.
type Replay func(schedule.Schedule) (run.Job, error)

// Shortest drops disturbances one by one, then steps from the end. A schedule with fewer disturbances may
// take place in another step and be compared with another run: it is what its token replays.
func Shortest(f judge.Finding, replay Replay, find Find) judge.Finding {
	for again := true; again && len(f.Job.Schedule) > 1; {
		again = false
		for _, s := range f.Job.Schedule.Shorter() {
			j, err := replay(s)
			if err != nil {
				continue
			}
			if g, ok := stillBreaks(find, j, f); ok {
				f, again = g, true
				break
			}
		}
	}
	if f.Job.Last > 0 || f.Job.Like == nil { // a race: it ends with its step already
		return f
	}
	for last := max(1, f.Step); last < len(f.Job.Like.Steps)-1; last++ {
		until := schedule.Disturbance{Kind: schedule.Until, At: last}
		j := run.Job{Schedule: append(slices.Clone(f.Job.Schedule), until), From: f.Job.From, Like: f.Job.Like}
		if g, ok := stillBreaks(find, j, f); ok {
			return g
		}
	}
	return f
}

// stillBreaks plays a job and reports whether it breaks something that f breaks.
func stillBreaks(find Find, j run.Job, f judge.Finding) (judge.Finding, bool) {
	g, ok := find(j)
	if !ok || !slices.ContainsFunc(f.Violations, func(v history.Violation) bool { return v.Invariant == g.Violations[0].Invariant }) {
		return f, false
	}
	return g, true
}

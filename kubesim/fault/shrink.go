package fault

import (
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// until is no disturbance: it ends a run after the step of that number.
const until = "until"

// shrinkAll makes the schedule of one finding of each group as short as it still breaks the
// same invariant: those are the ones that people read.
func (e *explorer) shrinkAll(t *testing.T, to *Report) error {
	w, err := e.newWorker()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, f := range to.Findings {
		if key := f.group(); !seen[key] && len(f.job.schedule) > 0 {
			seen[key] = true
			to.Findings[i] = e.shrink(t, &w, f)
		}
	}
	return nil
}

// shrink drops disturbances one by one, then steps from the end.
func (e *explorer) shrink(t *testing.T, w **worker, f Finding) Finding {
	for again := true; again && len(f.job.schedule) > 1; {
		again = false
		for _, s := range f.job.schedule.shorter() {
			if g, ok := e.stillBreaks(t, w, job{schedule: s, like: f.job.like, last: f.job.last}, f); ok {
				f, again = g, true
				break
			}
		}
	}
	if f.job.last > 0 || f.job.like == nil { // a race: it ends with its step already
		return f
	}
	for last := max(1, f.step); last < len(f.job.like.Steps)-1; last++ {
		j := job{schedule: append(slices.Clone(f.job.schedule), disturbance{kind: until, at: last}), from: f.job.from, like: f.job.like}
		if g, ok := e.stillBreaks(t, w, j, f); ok {
			return g
		}
	}
	return f
}

// shorter returns schedules with one disturbance less. What follows it may come a few calls
// earlier without it, because nothing is tried again, or one later.
func (s schedule) shorter() (all []schedule) {
	for i := range s {
		for _, shift := range []int{0, -1, -2, -3, 1} {
			short := slices.Delete(slices.Clone(s), i, i+1)
			for k := i; k < len(short); k++ {
				short[k].at = max(0, short[k].at+shift)
			}
			all = append(all, short)
			if i == len(s)-1 {
				break // nothing follows
			}
		}
	}
	return all
}

// stillBreaks plays a job and tells whether it breaks something that f breaks.
func (e *explorer) stillBreaks(t *testing.T, w **worker, j job, f Finding) (Finding, bool) {
	r := (*w).play(t, j)
	if r.lost {
		fresh, err := e.newWorker()
		if err != nil || r.run == nil {
			return f, false
		}
		*w = fresh
	}
	var report Report
	e.judge(&report, r, j)
	for _, g := range report.Findings {
		if slices.ContainsFunc(f.Violations, func(v Violation) bool { return v.Invariant == g.Violations[0].Invariant }) {
			return g, true
		}
	}
	return f, false
}

// lastStep is the number of the step after which a run is to end.
func (j job) lastStep(steps int) int {
	for _, d := range j.schedule {
		if d.kind == until {
			return min(d.at, steps)
		}
	}
	if j.last > 0 {
		return j.last
	}
	return steps
}

// firstFault is the step during which a run was disturbed first.
func firstFault(r *history.Run) int {
	if len(r.Faults) == 0 {
		return 0
	}
	return r.Faults[0].Step
}

package plan

import (
	"math/rand/v2"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Pairs samples n different pairs of disturbances, or all if there are fewer, the same ones each time with the same seed. A larger
// sample begins with a smaller one. The second disturbance is placed by the undisturbed run, too, so it may find nothing to disturb.
func (p *Plan) Pairs(n int) []run.Job {
	silent := *p
	silent.Pruned = map[Rule]int{}
	singles := slices.Concat(silent.Crashes(), silent.Faults(), silent.Stale())
	left := len(singles) * (len(singles) - 1) / 2
	source := rand.New(rand.NewPCG(1+p.Seed, uint64(len(singles))))
	drawn := map[[2]int]bool{}
	var jobs []run.Job
	for len(jobs) < n && left > 0 {
		a, b := source.IntN(len(singles)), source.IntN(len(singles))
		pair := [2]int{min(a, b), max(a, b)}
		if a == b || drawn[pair] {
			continue
		}
		drawn[pair] = true
		left--
		if j, ok := together(singles[a], singles[b]); ok {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// together is a job with the disturbances of two others, the earlier one first. It is false if both are of the same call, which
// can be disturbed only once. If the first is a crash, the job begins with it.
func together(a, b run.Job) (run.Job, bool) {
	first, second := a.Schedule[0], b.Schedule[0]
	switch {
	case !isOfCall(first) || !isOfCall(second):
		if follows(a, b) {
			a, b = b, a
		}
	case first.At == second.At:
		return run.Job{}, false
	case first.At > second.At:
		a, b = b, a
	}
	j := run.Job{Schedule: schedule.Schedule{a.Schedule[0], b.Schedule[0]}}
	if follows(b, a) {
		j.From = a.From
	}
	return j, true
}

// isOfCall reports whether a disturbance counts calls, and not reads from caches or passes.
func isOfCall(d schedule.Disturbance) bool {
	return d.Kind != schedule.StaleRead && d.Kind != schedule.StalePass
}

// follows reports whether what one job disturbs comes after the crash of another, as far as that has a snapshot.
func follows(j, crash run.Job) bool {
	if crash.From == nil {
		return false
	}
	at, d := crash.From.Position, j.Schedule[0]
	switch d.Kind {
	case schedule.StaleRead:
		return d.At >= at.Reads
	case schedule.StalePass:
		return d.At >= at.Looks
	}
	return d.At > at.Call
}

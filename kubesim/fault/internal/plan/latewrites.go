package plan

import (
	"slices"
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Departures kills the operator at each write that changes something, before it has an effect: what the next process
// does then says when the write may arrive.
func (p *Plan) Departures() []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		if c.Write && c.Changed && !p.inSilence(c) && !history.Housekeeping(c.Group, c.Resource) {
			jobs = append(jobs, p.crash(schedule.CrashBefore, c.Index))
		}
	}
	return jobs
}

// Arriving lets the writes at which the operator was killed arrive during each recovery: just before each call that has
// to do with them, and when all is over.
func (p *Plan) Arriving(all []Recovery) []run.Job {
	var jobs []run.Job
	for i := range all {
		v := &all[i]
		at := v.job.Schedule[0].At
		write, end := &v.calls[at], min(v.last, len(v.calls))
		for n := at + 1; n < end && v.calls[n].At.Sub(write.At) < run.FlightTime; n++ {
			if c := &v.calls[n]; matters(c) && !p.skip(Independent, !concern(write, c)) {
				jobs = append(jobs, after(schedule.LateWrite, at, n-at))
			}
		}
		jobs = append(jobs, after(schedule.LateWrite, at, end-at))
	}
	return jobs
}

// Thawing lets the processes that were killed at writes of their passes stand still there instead, and go on during
// each recovery just before each call that has to do with the write, and when all is over.
func (p *Plan) Thawing(all []Recovery) []run.Job {
	within := slices.DeleteFunc(slices.Clone(all), func(v Recovery) bool { return v.calls[v.job.Schedule[0].At].Pass == history.Nobody })
	jobs := p.Arriving(within)
	for i := range jobs {
		d := jobs[i].Schedule[0]
		// In these runs the call is made when the process goes on, not before the recovery.
		later, _ := strconv.Atoi(d.Arg)
		jobs[i] = after(schedule.Frozen, d.At, later-1)
	}
	return jobs
}

// matters reports whether somebody acts by what a call came to, or finds it changed.
func matters(c *history.Call) bool {
	return !history.Housekeeping(c.Group, c.Resource) && (c.Write || c.Pass != history.Nobody)
}

// concern reports whether two calls may be about the same: all external ones may.
func concern(a, b *history.Call) bool {
	if a.Side == history.External || b.Side == history.External {
		return a.Side == b.Side
	}
	return a.Group == b.Group && a.Resource == b.Resource && (a.Name == "" || b.Name == "" || a.Name == b.Name && a.Namespace == b.Namespace)
}

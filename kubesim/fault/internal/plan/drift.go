package plan

import (
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Drifting lets somebody else delete and edit each object that the operator made and that stays: at the end of each step, and
// just before writes of the operator in it, one of them at each in turn.
func (p *Plan) Drifting() []run.Job {
	var jobs []run.Job
	writes := p.writesOfSteps()
	for step := range p.Reference.Run.Steps {
		all := disturb.Drifts(p.Reference.Run, step)
		for n := range all {
			jobs = append(jobs, withArg(schedule.Drift, step, strconv.Itoa(n)))
		}
		for moment, c := range writes[step] {
			jobs = append(jobs, p.driftingBefore(c.Index, moment, all)...)
		}
	}
	return jobs
}

// driftingBefore lets somebody else do before a call what may be done to what is there by then. moment chooses one of it.
func (p *Plan) driftingBefore(call, moment int, all []disturb.Drift) []run.Job {
	var there []run.Job
	for n, d := range all {
		if d.Made < call {
			there = append(there, withArg(schedule.Drifted, call, strconv.Itoa(n)))
		}
	}
	var jobs []run.Job
	for i, j := range there {
		if !p.skip(Alternating, i != moment%len(there)) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// writesOfSteps are the operator's writes until each step has settled, by step.
func (p *Plan) writesOfSteps() map[int][]history.Call {
	writes := map[int][]history.Call{}
	for _, c := range p.calls() {
		step := p.Reference.Run.StepOf(c.Index)
		if c.Write && !history.Housekeeping(c.Group, c.Resource) && c.Index < p.Reference.Run.Steps[step].SettledCall {
			writes[step] = append(writes[step], c)
		}
	}
	return writes
}

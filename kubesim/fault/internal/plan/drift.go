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
	add := func(kind string, at, n int) {
		jobs = append(jobs, run.Job{Schedule: schedule.Schedule{{Kind: kind, At: at, Arg: strconv.Itoa(n)}}})
	}
	writes := map[int][]history.Call{}
	for _, c := range p.calls() {
		if step := p.Reference.Run.StepOf(c.Index); c.Write && !history.Housekeeping(c.Group, c.Resource) && c.Index < p.Reference.Run.Steps[step].SettledCall {
			writes[step] = append(writes[step], c)
		}
	}
	for step := range p.Reference.Run.Steps {
		all := disturb.Drifts(p.Reference.Run, step)
		for n := range all {
			add(schedule.Drift, step, n)
		}
		for moment, c := range writes[step] {
			var there []int // at that moment
			for n, d := range all {
				if d.Made < c.Index {
					there = append(there, n)
				}
			}
			for i, n := range there {
				if !p.skip(Alternating, i != moment%len(there)) {
					add(schedule.Drifted, c.Index, n)
				}
			}
		}
	}
	return jobs
}

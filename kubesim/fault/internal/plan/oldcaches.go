package plan

import (
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Remembering kills the operator after each write that changes something, and lets the caches of the next process
// begin with an older state: as it was before each change of the present step, and before and after each change of an
// earlier one that others made.
func (p *Plan) Remembering() []run.Job {
	if p.Replicas > 1 {
		return nil // who takes over has filled its caches long ago
	}
	var jobs []run.Job
	seen := p.seenChanges()
	for _, c := range p.calls() {
		if !c.Write || !c.Changed || p.inSilence(c) || history.Housekeeping(c.Group, c.Resource) {
			continue
		}
		for _, ago := range p.agos(seen, c) {
			j := p.crash(schedule.OldCache, c.Index)
			j.Schedule[0].Arg = strconv.Itoa(ago)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// seenChanges are the changes since the first step began that the operator's caches show.
func (p *Plan) seenChanges() (seen []*history.Change) {
	r := p.Reference.Run
	if len(r.Steps) < 2 {
		return nil
	}
	watched := r.Watched()
	for i := range r.Changes {
		if h := &r.Changes[i]; h.Rev > r.Steps[1].Rev && watched(h.Group, h.Resource) {
			seen = append(seen, h)
		}
	}
	return seen
}

// agos are how many changes back the caches may begin after a call.
func (p *Plan) agos(seen []*history.Change, c history.Call) (agos []int) {
	step := p.Reference.Run.StepOf(c.Index)
	var before []*history.Change
	for _, h := range seen {
		if h.Call == history.Nobody && !h.At.After(c.At) || h.Call != history.Nobody && h.Call <= c.Index {
			before = append(before, h)
		}
	}
	for i, h := range before {
		if h.Step == step || i == 0 || h.By != history.Operator || before[i-1].By != history.Operator {
			agos = append(agos, len(before)-i)
		}
	}
	return agos
}

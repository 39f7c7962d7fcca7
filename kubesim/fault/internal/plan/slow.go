package plan

import (
	"cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// How long calls take: less and much more than usual time limits.
const (
	aWhile  = "20s"
	anAge   = "1h"
	inTurns = 2
)

// Slowing lets each call take long in each way, or in two of four in turn.
func (p *Plan) Slowing() []run.Job {
	ways := []schedule.Disturbance{
		{Kind: schedule.SlowRequest, Arg: anAge},
		{Kind: schedule.SlowRequest, Arg: aWhile},
		{Kind: schedule.SlowAnswer, Arg: aWhile},
		{Kind: schedule.SlowAnswer, Arg: anAge},
	}
	var jobs []run.Job
	moment := 0
	for _, c := range p.calls() {
		if !isOwn(&c) || p.inSilence(c) {
			continue
		}
		moment++
		for n, d := range ways {
			if !p.skip(Alternating, n%inTurns != moment%inTurns) {
				jobs = append(jobs, withArg(d.Kind, c.Index, d.Arg))
			}
		}
	}
	return jobs
}

// isOwn reports whether a call is the operator's, and not one of its caches or recorders.
func isOwn(c *history.Call) bool {
	return c.Side == history.External || !history.Housekeeping(c.Group, c.Resource) && (c.Write || c.Pass != history.Nobody)
}

// Unanswered lets each write that changes something time out without effect: what the operator does then says when the
// effect may come.
func (p *Plan) Unanswered() []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		if c.Write && c.Changed && isOwn(&c) && !p.inSilence(c) {
			jobs = append(jobs, single(schedule.NoAnswer, c.Index))
		}
	}
	return jobs
}

// TimingOut lets writes that timed out take effect when the operator has tried the same again, and when it has made
// all other calls.
func (p *Plan) TimingOut(all []Recovery) []run.Job {
	var jobs []run.Job
	for i := range all {
		v := &all[i]
		at := v.job.Schedule[0].At
		end := min(v.last, len(v.calls))
		for n := at + 1; n < end-1 && v.calls[n].At.Sub(v.calls[at].At) < run.EffectTime; n++ {
			if isSameRequest(&v.calls[at], &v.calls[n]) {
				jobs = append(jobs, after(schedule.LateEffect, at, n+1-at))
				break
			}
		}
		jobs = append(jobs, after(schedule.LateEffect, at, end-at))
	}
	return jobs
}

// isSameRequest reports whether b asks for the same as a. The name of an object that a server names is not known before.
func isSameRequest(a, b *history.Call) bool {
	if a.Side == history.External {
		return b.Side == a.Side && a.Sort() == b.Sort()
	}
	return a.Side == b.Side && a.Verb == b.Verb && a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource &&
		a.Namespace == b.Namespace && cmp.Or(a.Name, b.Name) == b.Name
}

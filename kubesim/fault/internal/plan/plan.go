// Package plan lists the schedules to play, from what the undisturbed run did.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Rule is a reason to leave a schedule out.
type Rule string

// The rules; package fault says what each means.
const (
	NoEffect    Rule = "no effect"
	SameInstant Rule = "same instant"
	TooEarly    Rule = "too early"
	NothingHeld Rule = "nothing held"
	Alternating Rule = "alternating"
	Locked      Rule = "locked"
	Thinned     Rule = "thinned"
	OutOfTime   Rule = "out of time"
	SameState   Rule = "same state"
	Independent Rule = "independent"
)

// Plan lists schedules.
type Plan struct {
	// Reference is the undisturbed run.
	Reference run.Result
	// Replicas is how many processes run at a time, Races how many races there are.
	Replicas, Races int
	// Spared are races that are not played. Since is the step from which on a race has something to act on; 0 is
	// the beginning.
	Spared map[int]bool
	Since  map[int]int
	// Ends are ends of races that are right, besides those of the runs that they are compared with.
	Ends func(run.Racing) []*history.Run
	// Lag is for how long reads of the external API may be behind.
	Lag time.Duration
	// Seed determines which pairs are played.
	Seed uint64
	// Wanted are the families that are played; some disturb recoveries only if they are.
	Wanted []schedule.Family
	// Keep are rules that are switched off.
	Keep []Rule
	// Pruned counts the schedules that were left out.
	Pruned map[Rule]int
}

// skip counts a schedule that a rule leaves out, unless the rule is switched off.
func (p *Plan) skip(r Rule, applies bool) bool {
	if !applies || slices.Contains(p.Keep, r) {
		return false
	}
	p.Pruned[r]++
	return true
}

// Thin leaves out schedules evenly until no more than most are left; all stay if that is 0. Of each kind of call as many
// faults stay as of any other, as long as there are so many, and in other ways each time.
func (p *Plan) Thin(jobs []run.Job, most int) []run.Job {
	if most <= 0 || len(jobs) <= most {
		return jobs
	}
	var kinds []string
	of := map[string][]run.Job{}
	for _, j := range jobs {
		kind := p.disturbed(j)
		if of[kind] == nil {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], j)
	}
	most = max(most, len(kinds)) // a kind of call is a piece of code that no other fault tests
	p.Pruned[Thinned] += len(jobs) - most
	share := map[string]int{}
	for left := most; left > 0; {
		for _, kind := range kinds {
			if left > 0 && share[kind] < len(of[kind]) {
				share[kind]++
				left--
			}
		}
	}
	left := make([]run.Job, 0, most)
	for turn, kind := range kinds {
		all, n := of[kind], share[kind]
		for i := range n {
			left = append(left, all[(i*len(all)/n+turn)%len(all)])
		}
	}
	return left
}

// disturbed is the kind of call that a fault is at; empty for other schedules.
func (p *Plan) disturbed(j run.Job) string {
	if j.Schedule.Family() != schedule.Faults {
		return ""
	}
	c := p.Reference.Run.Calls[j.Schedule[0].At]
	what, _, _ := strings.Cut(c.What, " ") // the rest names the resource
	return strings.Join([]string{c.Verb, c.Group, c.Resource, c.Subresource, what}, " ")
}

// single is a job with one disturbance.
func single(kind string, at int) run.Job { return withArg(kind, at, "") }

// withArg is a job with one disturbance and what its kind wants to know besides.
func withArg(kind string, at int, arg string) run.Job {
	return run.Job{Schedule: schedule.Schedule{{Kind: kind, At: at, Arg: arg}}}
}

// after is a job with a disturbance that has its effect so many calls later, at least one.
func after(kind string, at, calls int) run.Job { return withArg(kind, at, strconv.Itoa(max(1, calls))) }

// calls are those that can be disturbed.
func (p *Plan) calls() []history.Call {
	return slices.DeleteFunc(slices.Clone(p.Reference.Run.Calls), func(c history.Call) bool { return c.ForOthers })
}

// Crashes kills the operator before and after each write.
func (p *Plan) Crashes() []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		if !c.Write {
			continue
		}
		// What a call did at the external API may show later than now, so only one that failed did nothing.
		noEffect := !c.Changed && (c.Side == history.Kubernetes || c.Err != "")
		if !p.skip(NoEffect, noEffect) && !p.skip(SameInstant, p.followsAtOnce(c.Index)) {
			jobs = append(jobs, p.crash(schedule.CrashBefore, c.Index))
		}
		if !p.skip(NoEffect, noEffect) {
			jobs = append(jobs, p.crash(schedule.CrashAfter, c.Index))
		}
	}
	return jobs
}

func (p *Plan) crash(kind string, call int) run.Job {
	j := single(kind, call)
	if steps := p.Reference.Run.Steps; p.Replicas <= 1 && call < steps[len(steps)-1].SettledCall { // else it is in the silence, and no snapshot leads there
		j.From = p.Reference.Learned.Snapshots[run.Point{Call: call, After: kind != schedule.CrashBefore}]
	}
	return j
}

// followsAtOnce reports whether the crash after the write before call i is the crash before
// call i: nothing durable changed in between, and no time passed.
func (p *Plan) followsAtOnce(i int) bool {
	r := p.Reference.Run
	c := r.Calls[i]
	for k := i - 1; k >= 0; k-- {
		before := r.Calls[k]
		if !before.Write || !before.Changed && before.Side == history.Kubernetes {
			continue
		}
		if r.StepOf(before.Index) != r.StepOf(i) || c.At.Sub(before.At) > time.Second {
			return false
		}
		s, ok := p.Reference.Learned.Snapshots[run.Point{Call: i}]
		earlier, had := p.Reference.Learned.Snapshots[run.Point{Call: before.Index, After: true}]
		return ok && had && s.IsSameAs(earlier)
	}
	return false
}

// Faults disturbs each call once in each way.
func (p *Plan) Faults() []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		for _, kind := range faultsOf(c) {
			jobs = append(jobs, single(kind, c.Index))
		}
	}
	return jobs
}

func faultsOf(c history.Call) []string {
	kinds := []string{schedule.NoAnswer, schedule.Throttled, schedule.Failed, schedule.Refused}
	if c.Write {
		kinds = append(kinds, schedule.LostAnswer)
	}
	switch {
	case c.Side == history.External && c.Write:
		kinds = append(kinds, schedule.FailedAfter)
	case c.Write && c.Name != "" && c.Verb != "create":
		kinds = append(kinds, schedule.Conflict)
	}
	return kinds
}

// Stale holds events back at each read and pass that one could have come before.
func (p *Plan) Stale() []run.Job {
	var jobs []run.Job
	add := func(kind string, at []bool) {
		for i, could := range at {
			if !p.skip(NothingHeld, !could) {
				jobs = append(jobs, single(kind, i))
			}
		}
	}
	add(schedule.StaleRead, p.Reference.Learned.Reads)
	add(schedule.StalePass, p.Reference.Learned.Passes)
	return append(jobs, p.lags()...)
}

// lags lets external reads show what was there before a change.
func (p *Plan) lags() []run.Job {
	var jobs []run.Job
	var changed time.Time
	for _, c := range p.calls() {
		if c.Side != history.External {
			continue
		}
		if c.Write && c.Changed {
			changed = c.At
		}
		if !c.Write && !changed.IsZero() && c.At.Sub(changed) < p.Lag {
			jobs = append(jobs, single(schedule.Lag, c.Index))
		}
	}
	return jobs
}

// Duplicates delivers each event twice.
func (p *Plan) Duplicates() []run.Job {
	jobs := make([]run.Job, p.Reference.Learned.Deliveries)
	for i := range jobs {
		jobs[i] = single(schedule.Twice, i)
	}
	return jobs
}

// Delaying lets the events of one watch wait for some passes from each event on, while others come.
func (p *Plan) Delaying() []run.Job {
	return p.alternating([]schedule.Disturbance{
		{Kind: schedule.Late, Arg: "1"}, {Kind: schedule.Late, Arg: "3"}, {Kind: schedule.Merged, Arg: "3"}, {Kind: schedule.Merged, Arg: "1"},
	})
}

// Breaking ends the watch of each event before it is delivered.
func (p *Plan) Breaking() []run.Job {
	var jobs []run.Job
	for i := range p.Reference.Learned.Deliveries {
		jobs = append(jobs, single(schedule.Gone, i))
		if !p.skip(Alternating, i%2 == 1) { // finds least
			jobs = append(jobs, single(schedule.Closed, i))
		}
	}
	return jobs
}

// alternating disturbs each event in each way, or only in every second one in turn.
func (p *Plan) alternating(ways []schedule.Disturbance) []run.Job {
	var jobs []run.Job
	for i := range p.Reference.Learned.Deliveries {
		for n, d := range ways {
			if !p.skip(Alternating, n%2 != i%2) {
				jobs = append(jobs, withArg(d.Kind, i, d.Arg))
			}
		}
	}
	return jobs
}

// Panicking lets the author's code panic once at each point that it comes to.
func (p *Plan) Panicking() []run.Job {
	jobs := make([]run.Job, len(p.Reference.Learned.Points))
	for n := range jobs {
		jobs[n] = single(schedule.Panic, n)
	}
	return jobs
}

// LostAnswers loses the answer to each change at the external API. Between such an answer and the next
// call the author's code is asked what it is asked at no other time, see [PanickingAfter].
func (p *Plan) LostAnswers() []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		if c.Side == history.External && c.Write && c.Changed {
			j := single(schedule.LostAnswer, c.Index)
			j.Like = p.Reference.Run
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// PanickingAfter lets the author's code panic between an answer that was lost and the next call, from
// what was played of the job that loses it.
func PanickingAfter(j run.Job, r run.Result) []run.Job {
	var jobs []run.Job
	for n, v := range r.Learned.Points {
		if v.Calls == j.Schedule[0].At+1 {
			jobs = append(jobs, run.Job{Schedule: append(slices.Clone(j.Schedule), schedule.Disturbance{Kind: schedule.Panic, At: n})})
		}
	}
	return jobs
}

// Hanging lets the author's code never return once at each point. The run ends with the step in which
// it comes to that, after a restart. Whoever asks under a lock cannot be played: the simulated clock
// stands as long as somebody waits for that.
func (p *Plan) Hanging() []run.Job {
	var jobs []run.Job
	for n, v := range p.Reference.Learned.Points {
		if v.Cache {
			p.Pruned[Locked]++
			continue
		}
		j := single(schedule.Hang, n)
		j.Last = v.Step
		jobs = append(jobs, j)
	}
	return jobs
}

// QuietRaces lets each user act when a step is over and all is quiet: what races are compared with.
func (p *Plan) QuietRaces() []run.Racing {
	var all []run.Racing
	for step := 1; step < len(p.Reference.Run.Steps); step++ {
		for n := range p.Races {
			if !p.Spared[n] && !p.skip(TooEarly, step < p.Since[n]) {
				all = append(all, run.Racing{Step: step, Race: n})
			}
		}
	}
	return all
}

// Racing lets a user act just before each call. The run ends with the step it happens in, and
// is compared with the run in which the user came when all was quiet.
func (p *Plan) Racing(like map[run.Racing]*history.Run) []run.Job {
	return p.racing(like, func(c history.Call, race string) schedule.Schedule {
		return schedule.Schedule{{Kind: schedule.Race, At: c.Index, Arg: race}}
	})
}

// Absences kills the operator after each write that changed something, and lets a user act before the
// operator is back. What the operator did not record before the write is lost then: the spec that it would
// find it by is another one. The run is compared with that in which the user came when all was quiet.
func (p *Plan) Absences(like map[run.Racing]*history.Run) []run.Job {
	return p.racing(like, func(c history.Call, race string) schedule.Schedule {
		if !c.Write || !c.Changed {
			return nil
		}
		return schedule.Schedule{{Kind: schedule.CrashAfter, At: c.Index}, {Kind: schedule.Race, At: c.Index + 1, Arg: race}}
	})
}

// racing plays what at returns for each call and race, unless that is nothing.
func (p *Plan) racing(like map[run.Racing]*history.Run, at func(c history.Call, race string) schedule.Schedule) []run.Job {
	var jobs []run.Job
	for _, c := range p.calls() {
		step := p.Reference.Run.StepOf(c.Index)
		if step == 0 || p.inSilence(c) {
			continue // there is nothing yet, or it is the user who comes when all is quiet
		}
		for n := range p.Races {
			racing := run.Racing{Step: step, Race: n}
			s, quiet := at(c, fmt.Sprint(n)), like[racing]
			if s != nil && quiet != nil {
				jobs = append(jobs, run.Job{Schedule: s, Like: quiet, Alike: p.Ends(racing), Last: step})
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b run.Job) int { return cmp.Compare(a.Last, b.Last) })
	return jobs
}

// inSilence reports whether a call is made after the last step, when nobody does anything.
func (p *Plan) inSilence(c history.Call) bool {
	steps := p.Reference.Run.Steps
	return c.Index >= steps[len(steps)-1].SettledCall
}

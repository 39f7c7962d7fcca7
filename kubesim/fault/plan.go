package fault

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// plan lists the schedules to play, from what the undisturbed run did.
type plan struct {
	scenario  *Scenario
	reference result
	keep      []Rule // switched off
	pruned    map[Rule]int
}

// skip counts a schedule that a rule leaves out, unless the rule is switched off.
func (p *plan) skip(r Rule, applies bool) bool {
	if !applies || slices.Contains(p.keep, r) {
		return false
	}
	p.pruned[r]++
	return true
}

// crashes kills the operator before and after each write.
func (p *plan) crashes() []job {
	var jobs []job
	for i, c := range p.reference.run.Calls {
		if !c.Write {
			continue
		}
		// What a call did outside may show later than now, so only one that failed did nothing.
		noEffect := !c.Changed && (c.Side == history.Kubernetes || c.Err != "")
		if !p.skip(NoEffect, noEffect) && !p.skip(SameInstant, p.followsAtOnce(i)) {
			jobs = append(jobs, p.crash(crashBefore, c.Index))
		}
		if !p.skip(NoEffect, noEffect) {
			jobs = append(jobs, p.crash(crashAfter, c.Index))
		}
	}
	return jobs
}

// thin leaves out schedules evenly until no more than most are left; all stay if that is 0.
func (p *plan) thin(jobs []job, most int) []job {
	if most <= 0 || len(jobs) <= most {
		return jobs
	}
	p.pruned[Thinned] += len(jobs) - most
	left := make([]job, most)
	for i := range left {
		left[i] = jobs[i*len(jobs)/most]
	}
	return left
}

func (p *plan) crash(kind string, call int) job {
	j := job{schedule: schedule{{kind: kind, at: call}}}
	if p.scenario.Replicas <= 1 {
		j.from = p.reference.play.snapshots[point{call, kind == crashAfter}]
	}
	return j
}

// followsAtOnce tells whether the crash after the write before call i is the crash before
// call i: nothing durable changed in between, and no time passed.
func (p *plan) followsAtOnce(i int) bool {
	r := p.reference.run
	c := r.Calls[i]
	for k := i - 1; k >= 0; k-- {
		before := r.Calls[k]
		if !before.Write || !before.Changed && before.Side == history.Kubernetes {
			continue
		}
		if stepOf(r, before.Index) != stepOf(r, i) || c.At.Sub(before.At) > time.Second {
			return false
		}
		s, ok := p.reference.play.snapshots[point{i, false}]
		earlier, had := p.reference.play.snapshots[point{before.Index, true}]
		return ok && had && s.db.Revision() == earlier.db.Revision() && s.views == earlier.views
	}
	return false
}

// stepOf returns during which step a call was made.
func stepOf(r *history.Run, call int) int {
	for i, s := range slices.Backward(r.Steps) {
		if s.Call <= call {
			return i
		}
	}
	return 0
}

// faults disturbs each call once in each way.
func (p *plan) faults() []job {
	var jobs []job
	for _, c := range p.reference.run.Calls {
		for _, kind := range faultsOf(c) {
			jobs = append(jobs, job{schedule: schedule{{kind: kind, at: c.Index}}})
		}
	}
	return jobs
}

func faultsOf(c history.Call) []string {
	kinds := []string{noAnswer, throttled, failed, refused}
	if c.Write {
		kinds = append(kinds, lostAnswer)
	}
	switch {
	case c.Side == history.External && c.Write:
		kinds = append(kinds, failedAfter)
	case c.Write && c.Name != "" && c.Verb != "create":
		kinds = append(kinds, conflict)
	}
	return kinds
}

// stale holds events back at each read and pass that one could have come before.
func (p *plan) stale() []job {
	var jobs []job
	add := func(kind string, at []bool) {
		for i, could := range at {
			if !p.skip(NothingHeld, !could) {
				jobs = append(jobs, job{schedule: schedule{{kind: kind, at: i}}})
			}
		}
	}
	add(staleRead, p.reference.play.reads)
	add(stalePass, p.reference.play.passes)
	return append(jobs, p.lags()...)
}

// lags lets reads of the outside show what was there before a change.
func (p *plan) lags() []job {
	var jobs []job
	var changed time.Time
	for _, c := range p.reference.run.Calls {
		if c.Side != history.External {
			continue
		}
		if c.Write && c.Changed {
			changed = c.At
		}
		if !c.Write && !changed.IsZero() && c.At.Sub(changed) < p.scenario.Lag {
			jobs = append(jobs, job{schedule: schedule{{kind: lag, at: c.Index}}})
		}
	}
	return jobs
}

// duplicates delivers each event twice.
func (p *plan) duplicates() []job {
	jobs := make([]job, p.reference.play.deliveries)
	for i := range jobs {
		jobs[i] = job{schedule: schedule{{kind: twice, at: i}}}
	}
	return jobs
}

// racing is a race and the step during which it happens.
type racing struct{ step, race int }

// races lets a user act just before each call. The run ends with the step it happens in, and
// is held against the run in which the user came when all was quiet.
func (p *plan) races(like map[racing]*history.Run) []job {
	var jobs []job
	for _, c := range p.reference.run.Calls {
		step := stepOf(p.reference.run, c.Index)
		if step == 0 {
			continue // there is nothing yet
		}
		for n := range p.scenario.raceSteps() {
			if quiet := like[racing{step, n}]; quiet != nil {
				jobs = append(jobs, job{
					schedule: schedule{{kind: race, at: c.Index, arg: fmt.Sprint(n)}},
					like:     quiet, last: step,
				})
			}
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.last, b.last) })
	return jobs
}

// pairs samples n times two disturbances in one run, the same ones each time. The second is placed by
// the undisturbed run too, so it may find nothing to disturb.
func (p *plan) pairs(n int) []job {
	quiet := &plan{scenario: p.scenario, reference: p.reference, keep: p.keep, pruned: map[Rule]int{}}
	singles := slices.Concat(quiet.crashes(), quiet.faults(), quiet.stale())
	source := rand.New(rand.NewPCG(1, uint64(len(singles))))
	var jobs []job
	for range min(cmp.Or(n, SampledPairs), len(singles)*(len(singles)-1)/2) {
		a, b := singles[source.IntN(len(singles))].schedule[0], singles[source.IntN(len(singles))].schedule[0]
		if a.at > b.at {
			a, b = b, a
		}
		jobs = append(jobs, job{schedule: schedule{a, b}})
	}
	return jobs
}

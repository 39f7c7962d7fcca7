package fault

import (
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
)

// visit is one of a run to a point in the author's code.
type visit struct {
	what  string
	calls int // that the operator had made by then
}

// injected is what the author's code panics with when a schedule wants it to.
type injected string

// Author is a point in code that the author of an operator gave to a framework, such as a driver's
// method: a wrapper of the author's type calls it at the beginning of each method, and after what
// has an effect. Schedules of [Panics] let it panic there. It does nothing otherwise, also for a nil
// Env. Code that panics has to run below a reconcile, or where somebody recovers.
func (e *Env) Author(what string) {
	if e == nil || !e.process.alive() {
		return
	}
	p := e.process.play
	p.mu.Lock()
	n := len(p.points)
	p.points = append(p.points, visit{what, len(p.run.Calls)})
	p.mu.Unlock()
	if d, ok := p.schedule.find(n, panics); ok {
		p.noteFault(d, history.Nobody, what)
		panic(injected("fault: the author's code panics at " + what))
	}
}

// panics lets the author's code panic once at each point that it comes to.
func (p *plan) panics() []job {
	jobs := make([]job, len(p.reference.play.points))
	for n := range jobs {
		jobs[n] = job{schedule: schedule{{kind: panics, at: n}}}
	}
	return jobs
}

// panicking returns these jobs, and those in which the author's code panics between an answer to a
// change outside that was lost and the next call: what tells errors apart is there only then.
func (e *explorer) panicking(t *testing.T, p *plan) ([]job, error) {
	jobs := p.panics()
	if len(jobs) == 0 {
		return nil, nil
	}
	var lost []job
	for _, c := range p.reference.run.Calls {
		if c.Side == history.Outside && c.Write && c.Changed {
			lost = append(lost, job{schedule: schedule{{kind: lostAnswer, at: c.Index}}, like: p.reference.run})
		}
	}
	pairs := make([][]job, len(lost)) // in the order of the calls, whichever run ends first
	err := e.playAll(t, lost, func(j job, r result) {
		for n, v := range r.play.points {
			if v.calls == j.schedule[0].at+1 {
				pairs[j.number] = append(pairs[j.number], job{schedule: append(slices.Clone(j.schedule), disturbance{kind: panics, at: n})})
			}
		}
	})
	return append(jobs, slices.Concat(pairs...)...), err
}

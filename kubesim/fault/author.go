package fault

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// visit is one of a run to a point in the author's code.
type visit struct {
	what  string
	calls int // that the operator had made by then
	step  int
	// cache tells that a cache asks, which may hold a lock.
	cache bool
}

// injected is what the author's code panics with when a schedule wants it to.
type injected struct {
	text string
	// ends notes that nobody recovers it.
	ends func()
}

// String is asked for by whoever recovers a panic and tells of it, and by the runtime just before a
// panic that nobody recovers ends the process. Then the process that is simulated ends instead, and
// of the real one this goroutine alone: its deferred functions have run.
func (i *injected) String() string {
	if isFatal() {
		i.ends()
		runtime.Goexit()
	}
	return i.text
}

// isFatal tells whether the runtime prepares to end the process with a panic. A runtime that does
// that elsewhere one day ends the process, as without this.
func isFatal() bool {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == "runtime.preprintpanics" {
			return true
		}
		if !more {
			return false
		}
	}
}

// Author is a point in code that the author of an operator gave to a framework, such as a driver's
// method: a wrapper of the author's type calls it at the beginning of each method, and after what
// has an effect. Schedules of [Panics] let it panic there, those of [Hangs] let it wait until the
// process ends. It does nothing otherwise, also for a nil Env.
func (e *Env) Author(what string) {
	if e == nil || !e.process.alive() {
		return
	}
	pr, p := e.process, e.process.play
	p.mu.Lock()
	n := len(p.points)
	p.points = append(p.points, visit{what, len(p.run.Calls), p.step, p.caching})
	p.mu.Unlock()
	if d, ok := p.schedule.find(n, panics); ok {
		p.noteFault(d, history.Nobody, what)
		panic(&injected{"fault: the author's code panics at " + what, func() { pr.collapse(what) }})
	}
	if d, ok := p.schedule.find(n, hangs); ok {
		p.noteFault(d, history.Nobody, what)
		<-pr.ended
	}
}

// collapse ends a process in which nobody recovered a panic of the author's code.
func (pr *process) collapse(at string) {
	pr.play.mu.Lock()
	pr.play.run.Processes[pr.number].Collapsed = at
	pr.play.mu.Unlock()
	pr.play.crash(pr)
}

// panics lets the author's code panic once at each point that it comes to.
func (p *plan) panics() []job {
	jobs := make([]job, len(p.reference.play.points))
	for n := range jobs {
		jobs[n] = job{schedule: schedule{{kind: panics, at: n}}}
	}
	return jobs
}

// hangs lets the author's code never return once at each point. The run ends with the step in which
// it comes to that, after a restart. Whoever asks under a lock cannot be played: the simulated clock
// stands as long as somebody waits for that.
func (p *plan) hangs() []job {
	var jobs []job
	for n, v := range p.reference.play.points {
		if v.cache {
			p.pruned[Locked]++
			continue
		}
		jobs = append(jobs, job{schedule: schedule{{kind: hangs, at: n}}, last: v.step})
	}
	return jobs
}

// outlast lets the time pass that the operator may take to notice that the author's code does not
// return, if that began in this step: until then all may look as it should.
func (p *play) outlast() error {
	began := slices.IndexFunc(p.run.Faults, func(f history.Fault) bool { return f.Kind == hangs && f.Step == p.step })
	if began < 0 {
		return nil
	}
	if err := p.pass(time.Until(p.run.Faults[began].Time.Add(p.scenario.patience()))); err != nil {
		return err
	}
	return p.settle()
}

// noteHeld notes what the world has come to while the author's code does not return, when the operator
// has had all the time that it may take.
func (p *play) noteHeld() {
	if slices.ContainsFunc(p.schedule, func(d disturbance) bool { return d.kind == hangs }) && p.run.Held == nil {
		p.run.Held = &history.Held{At: time.Now(), Call: len(p.run.Calls), Rev: p.db.Revision(), Step: p.step, State: p.present()}
	}
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
		if c.Side == history.External && c.Write && c.Changed {
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

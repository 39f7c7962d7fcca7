package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// play is the story of one run: the scenario's steps, each until the cluster is quiet again.
type play struct {
	loop

	scenario *Scenario
	job      Job
	record   *history.Recorder
	learned  *Learned

	step     int
	resumed  bool // from a snapshot, in the middle of a step
	reminded int  // the process that was started to look at everything; Nobody for none
}

// newPlay puts together what a run consists of, without its sandbox.
func (w *Worker) newPlay(j Job) *play {
	s := w.simulation.scenario
	record := &history.Recorder{Run: &history.Run{
		Scenario: s.Name, Shared: s.Shared, Secrets: s.Secrets, IsRandom: w.simulation.State.IsRandom,
		Masked: w.simulation.State.Masked,
	}}
	learned := &Learned{Settled: map[int]history.Position{}}
	if j.States {
		learned.States = map[Point]string{}
	}
	if j.Keep {
		learned.Snapshots = map[Point]*sandbox.Snapshot{}
	}
	queue := turn.NewQueue()
	e := newEvents(j.Schedule, record, learned)
	others := &disturb.Others{Schedule: j.Schedule, Races: s.Races, Like: j.Like}
	c := &calls{
		flights: &flights{}, past: &past{}, slowness: &slowness{}, manager: s.Manager, secrets: s.Secrets, account: w.simulation.account, audit: &w.simulation.audit,
		schedule: j.Schedule, others: others, record: record, learned: learned,
	}
	points := &points{schedule: j.Schedule, record: record, events: e, learned: learned}
	doors := newDoors(record, len(w.settings.Webhooks) == 0)
	f := &fleet{scenario: s, queue: queue, events: e, make: func() *Process {
		return &Process{queue: queue, calls: c, events: e, points: points, record: record, doors: doors}
	}}
	return &play{
		loop:     loop{count: &w.acts, quiet: s.Quiet, others: others, queue: queue, events: e, fleet: f, doors: doors, calls: c},
		scenario: s, job: j, record: record, learned: learned, reminded: history.Nobody,
	}
}

// enter lets everybody act in a sandbox.
func (p *play) enter(box *sandbox.Sandbox) {
	p.box, p.calls.box = box, box
	box.Server.CallWebhooks(p.doors.server)
	box.Refused = func() int { return p.doors.now().refusals }
	p.others.Enter(box, p.record)
}

// live plays the scenario from its beginning or from a snapshot.
func (p *play) live(settings sandbox.Settings) error {
	var box *sandbox.Sandbox
	var err error
	if p.job.From == nil {
		time.Sleep(p.job.Later) //nolint:forbidigo // of the simulated clock
		box, err = sandbox.New(settings, p.record)
	} else {
		box, err = p.resume(settings)
	}
	if err != nil {
		return err
	}
	if p.job.From == nil {
		p.enter(box)
	}
	steps := append([]Step{{Name: "start"}}, p.scenario.Steps...)
	for last := p.job.lastStep(len(steps) - 1); p.step <= last; {
		if err := p.playStep(steps[p.step]); err != nil {
			return err
		}
		p.step++
	}
	if extra := p.job.Extra; extra != nil && !p.job.Early {
		p.beginStep(extra.Name)
		if err := p.attend(func() error { return p.others.Race(*extra) }); err != nil {
			return err
		}
		if err := p.endStep(Step{Name: extra.Name}, Job{Like: p.job.Goal}); err != nil {
			return err
		}
		p.step++
	}
	p.step--
	return p.silence()
}

// resume goes on where a process was killed in the undisturbed run: all that outlives it is
// as it was then.
func (p *play) resume(settings sandbox.Settings) (*sandbox.Sandbox, error) {
	from, d := p.job.From, p.job.Schedule[0]
	time.Sleep(time.Until(from.At)) //nolint:forbidigo // of the simulated clock
	box, err := sandbox.Resume(settings, p.record, from, p.job.Like)
	if err != nil {
		return nil, err
	}
	p.step, p.resumed = from.Position.Steps-1, true
	at := from.Position
	p.learned.Crashed = at
	p.learned.Reads, p.learned.Passes = make([]bool, at.Reads), make([]bool, at.Looks)
	p.learned.Deliveries, p.learned.Points = at.Deliveries, make([]Visit, at.Points)
	c := &p.record.Run.Calls[from.Position.Call]
	if d.Kind == schedule.CrashBefore {
		c.Code, c.Rev, c.Last, c.Changed = 0, 0, 0, false
	}
	c.Fault, c.Err = d.Kind, disturb.ErrDead.Error()
	p.enter(box) // the revision to begin with is looked for there
	p.calls.rememberPast(d)
	p.record.Disturbed(d.Kind, c.Index, c.What)
	return box, nil
}

// playStep plays one step.
func (p *play) playStep(step Step) error {
	if p.resumed {
		p.resumed = false
		if err := p.fleet.start(); err != nil {
			return err
		}
		if err := p.pass(time.Until(p.job.From.Waits)); err != nil {
			return &stepError{p.step, step.Name, err}
		}
		return p.endStep(step, p.job)
	}
	p.beginStep(step.Name)
	if p.step == 0 {
		for _, before := range p.scenario.Before {
			if err := p.box.Do(before.By, before.Do); err != nil {
				return &stepError{0, before.Name, err}
			}
		}
		if err := p.startAll(); err != nil {
			return err
		}
	}
	if err := p.comeEarly(); err != nil {
		return err
	}
	if do := p.doing(step); do != nil {
		if err := p.insist(func() error { return p.box.Do(step.By, do) }); err != nil {
			return &stepError{p.step, step.Name, err}
		}
	}
	p.calls.waitsUntil = time.Now().Add(step.Wait)
	if err := p.pass(step.Wait); err != nil {
		return &stepError{p.step, step.Name, err}
	}
	return p.endStep(step, p.job)
}

// doing is what is done in the present step; nil only lets time pass.
func (p *play) doing(step Step) func(context.Context, *sandbox.World) error {
	switch {
	case slices.Contains(p.job.Without, p.step):
		return nil
	case p.job.Instead != nil && p.step == p.job.Last:
		return p.job.Instead
	}
	return step.Do
}

// comeEarly lets a user act before the last step, if the job wants that.
func (p *play) comeEarly() error {
	if !p.job.Early || p.step != p.job.Last {
		return nil
	}
	if err := p.attend(func() error { return p.others.Race(*p.job.Extra) }); err != nil {
		return err
	}
	return p.settle()
}

// startAll starts the operator's processes.
func (p *play) startAll() error {
	for i := range max(1, p.scenario.Replicas) {
		if i > 0 { // so that it is always the first that leads
			if err := p.pass(10 * time.Second); err != nil {
				return err
			}
		}
		if err := p.fleet.start(); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) beginStep(name string) {
	p.record.Run.Steps = append(p.record.Run.Steps, history.Step{
		Name: name, Call: len(p.record.Run.Calls), Rev: p.box.DB.Revision(), At: time.Now(),
	})
}

// endStep waits until the cluster is quiet, and in a disturbed run until it is as it would be
// without the disturbance, as long as patience lasts.
func (p *play) endStep(step Step, j Job) error {
	if err := p.settle(); err != nil {
		return cmp.Or(p.others.Broken, error(&stepError{p.step, step.Name, err}))
	}
	if err := p.drift(); err != nil {
		return &stepError{p.step, step.Name, err}
	}
	if j.Like != nil {
		if err := p.recover(p.goalOf(step, j)); err != nil {
			return &stepError{p.step, step.Name, err}
		}
	}
	if err := p.others.SayNothingIfHeld(); err != nil {
		return err
	}
	h := &p.record.Run.Steps[p.step]
	h.State = p.box.State()
	h.Settled, h.SettledCall, h.SettledRev = time.Now(), len(p.record.Run.Calls), p.box.DB.Revision()
	p.learned.Settled[p.step] = p.learned.count(history.Position{Call: len(p.record.Run.Calls)})
	if p.others.Broken != nil {
		return p.others.Broken
	}
	if expect := p.expectationOf(step, j); expect != nil {
		err := p.attend(expect)
		switch {
		case err != nil && len(p.job.Schedule) == 0:
			return &stepError{p.step, step.Name, fmt.Errorf("undisturbed, the cluster came to rest but %w%s", unmetError{err}, p.lastError())}
		case err != nil:
			h.Unmet = err.Error()
		}
	}
	if j.Watchful {
		return p.watch()
	}
	return nil
}

// drift lets somebody else act on what the operator made, now that all is quiet, if the schedule has it for this step.
func (p *play) drift() error {
	d, ok := p.job.Schedule.Find(p.step, schedule.Drift)
	if !ok {
		return nil
	}
	if err := p.attend(func() error { return p.others.Drift(d) }); err != nil {
		return err
	}
	return p.settle()
}

// lastError is why the last pass of the step failed that did, in words; empty if none did.
func (p *play) lastError() string {
	passes, since := p.record.Run.Passes, p.record.Run.Steps[p.step].Call
	for i := len(passes) - 1; i >= 0 && passes[i].First >= since; i-- {
		if pass := &passes[i]; pass.Err != "" {
			return fmt.Sprintf("; the last error of controller %s, for %s: %s", pass.Controller, pass.Object, pass.Err)
		}
	}
	return ""
}

// stepError is a step that failed.
type stepError struct {
	number int
	name   string
	err    error
}

// Error names the step.
func (e *stepError) Error() string { return fmt.Sprintf("step %d, %q: %v", e.number, e.name, e.err) }

// Unwrap is why it failed.
func (e *stepError) Unwrap() error { return e.err }

// goal is what a disturbed run is to come to at the end of a step.
type goal struct {
	states []history.State // any of them
	like   *history.Run    // which may also age
	expect func() error    // nil expects nothing
}

func (p *play) goalOf(step Step, j Job) goal {
	return goal{j.wanted(p.step), j.Like, p.expectationOf(step, j)}
}

// expectationOf is what a step expects; nil if nothing, or if a user deletes or changes objects besides the scenario: the step
// may end otherwise then.
func (p *play) expectationOf(step Step, j Job) func() error {
	disturbed := len(p.job.Schedule) > 0
	if step.Expect == nil || disturbed && (j.Like == nil || len(j.Alike) > 0 || j.Schedule.Has(
		schedule.Race, schedule.Later, schedule.Overtaken, schedule.DeletedBefore, schedule.DeletedAfter, schedule.Replaced)) {
		return nil
	}
	return func() error { return step.Expect(context.Background(), p.box.World()) }
}

// recover gives the operator the time that it may take until the cluster is as it would be without the
// disturbance.
func (p *play) recover(g goal) error {
	if err := p.converge(g); err != nil {
		return err
	}
	if err := p.outlast(); err != nil {
		return err
	}
	return p.remind(g)
}

// isAt reports whether the cluster is as it is to be.
func (p *play) isAt(g goal) bool {
	now := p.box.State()
	if slices.ContainsFunc(g.states, func(w history.State) bool { return state.Matches(w, now) }) {
		return g.expect == nil || p.attend(g.expect) == nil
	}
	aged := state.AgedBy(p.record.Run, g.like, p.step, func(string) time.Time { return time.Now() })
	return len(aged) > 0 && slices.ContainsFunc(g.states, func(w history.State) bool { return state.Matches(state.Young(w, now, aged)) })
}

// converge waits until the cluster is as it is to be.
func (p *play) converge(g goal) error {
	end := time.Now().Add(p.scenario.Patience)
	for !p.isAt(g) && time.Now().Before(end) {
		seen := p.box.LastChange
		err := p.until(func() time.Duration {
			if p.box.LastChange.After(seen) {
				return 0
			}
			return time.Until(end)
		})
		if err != nil {
			return err
		}
		if err := p.settle(); err != nil {
			return err
		}
	}
	return nil
}

// outlast lets the time pass that the operator may take to notice that the author's code does not
// return, if that began in this step: until then all may look as it should.
func (p *play) outlast() error {
	faults := p.record.Run.Faults
	began := slices.IndexFunc(faults, func(f history.Fault) bool { return f.Kind == schedule.Hang && f.Step == p.step })
	if began < 0 {
		return nil
	}
	if err := p.pass(time.Until(faults[began].Time.Add(p.scenario.Patience))); err != nil {
		return err
	}
	return p.settle()
}

// remind starts the operator again, so that it observes everything: what nobody is told of, and what
// is held up by code that does not return, may stay wrong until then, but no longer. So may a status that was
// written late: it is like one that somebody forged.
func (p *play) remind(g goal) error {
	if !p.job.Schedule.Has(schedule.Forged, schedule.Hang, schedule.LateWrite, schedule.Frozen, schedule.LateEffect) || p.isAt(g) {
		return nil
	}
	p.noteHeld()
	if err := p.fleet.stop(); err != nil {
		return err
	}
	p.reminded = len(p.record.Run.Processes)
	if err := p.startAll(); err != nil {
		return err
	}
	p.box.LastChange = time.Now()
	if err := p.settle(); err != nil {
		return err
	}
	return p.converge(g)
}

// noteHeld notes what the cluster has come to while the driver's call does not return, when the operator
// has had all the time that it may take.
func (p *play) noteHeld() {
	run := p.record.Run
	if p.job.Schedule.Has(schedule.Hang) && run.Held == nil {
		run.Held = &history.Held{Call: len(run.Calls), Rev: p.box.DB.Revision(), Step: p.step, State: p.box.State()}
	}
}

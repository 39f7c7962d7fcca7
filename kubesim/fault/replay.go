package fault

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// replay plays the schedule of a token, and nothing else. Of what is found, that counts which it breaks.
func (e *exploration) replay(token string) (Report, error) {
	scenario, s, err := schedule.Parse(token)
	if err != nil {
		return Report{}, err
	}
	if scenario != e.scenario.Name {
		return e.unplayed("-fault.replay", scenario), nil
	}
	if err := e.prepare(); err != nil {
		return e.report, err
	}
	e.report.replay = &replayed{schedule: s.String()}
	if err := e.judgeUndisturbed(); err != nil || len(s) == 0 {
		return e.report, err
	}
	err = e.replayOne(s)
	return e.report, err
}

// replayAll plays the schedules that [Replay] names.
func (e *exploration) replayAll() error {
	for _, token := range e.options.replays {
		scenario, s, err := schedule.Parse(token)
		if err != nil {
			return err
		}
		if scenario != e.scenario.Name {
			continue
		}
		if err := e.replayOne(s); err != nil {
			return err
		}
		e.report.Schedules[Kind(s.Family())]++
	}
	return nil
}

// replayOne plays one schedule.
func (e *exploration) replayOne(s schedule.Schedule) error {
	token := s.Token(e.scenario.Name)
	j, err := e.jobFor(s)
	if err != nil {
		return err
	}
	before, played := len(e.report.Disturbed), run.Result{}
	err = e.play("schedules of the replay", []run.Job{j}, func(j run.Job, r run.Result) {
		for _, f := range r.Run.Faults {
			e.report.Disturbed = append(e.report.Disturbed, f.Kind+" at "+f.At)
		}
		played = r
	})
	if err != nil {
		return err
	}
	if *replayFlag != "" {
		e.showCalls(played.Run)
		e.report.Findings = nil // of runs that this one is compared with
		e.report.replay.early = played.Void
	}
	if s.Has(schedule.Later) && e.scenario.raceSteps()[j.Racing.Race].again != nil {
		return e.findAgain(j.Racing, token)
	}
	e.find(j, played)
	if j.Like != nil && len(e.report.Disturbed)-before < len(s.Disturbing()) {
		return fmt.Errorf("the schedule of replay token %s disturbs nothing any more: the undisturbed run has %d calls, and some of the token's numbers are beyond what happens", token, len(e.reference.Run.Calls))
	}
	return nil
}

// jobFor returns the job that plays a schedule from the beginning.
func (e *exploration) jobFor(s schedule.Schedule) (run.Job, error) {
	for _, d := range s {
		switch d.Kind {
		case schedule.Overtaken:
			return e.overtakenJob(d)
		case schedule.Race, schedule.Later:
			return e.raceJob(s, d)
		case schedule.Drift, schedule.Drifted:
			if err := e.checkDrift(d); err != nil {
				return run.Job{}, err
			}
		}
	}
	j := run.Job{Schedule: s, Like: e.reference.Run}
	for _, d := range s {
		points := e.reference.Learned.Points
		switch {
		case d.Kind == schedule.Forged || d.Kind == schedule.Replaced:
			j.Last = e.reference.Run.StepOf(d.At)
		case d.Kind == schedule.Hang && d.At < len(points):
			j.Last = points[d.At].Step
		}
	}
	return j, nil
}

// checkDrift says what is wrong with a drift of a token: the operator may make other objects by now.
func (e *exploration) checkDrift(d schedule.Disturbance) error {
	r, step := e.reference.Run, d.At
	if d.Kind == schedule.Drifted {
		step = r.StepOf(d.At)
	}
	if step < 0 || step >= len(r.Steps) {
		return fmt.Errorf("replay token: there is no step %d; the last one is %d, and -fault.list lists all schedules", step, len(r.Steps)-1)
	}
	all := len(disturb.Drifts(r, step))
	if n, err := strconv.Atoi(d.Arg); err != nil || n < 0 || n >= all {
		return fmt.Errorf("replay token: %s is none of the %d drifts of step %d; -fault.list lists all schedules", d, all, step)
	}
	return nil
}

// raceJob returns the job that plays a race.
func (e *exploration) raceJob(s schedule.Schedule, d schedule.Disturbance) (run.Job, error) {
	n, err := strconv.Atoi(d.Arg)
	if races := len(e.scenario.raceSteps()); err != nil || n < 0 || n >= races {
		return run.Job{}, fmt.Errorf("replay token: the scenario has %d races, %q is none of them", races, d.Arg)
	}
	if d.Kind == schedule.Later {
		j := e.quietRace(run.Racing{Step: d.At, Race: n})
		j.Like = nil
		return j, nil
	}
	step := e.reference.Run.StepOf(s[0].At) // a recovery from a crash ends in the step of the crash
	racing := run.Racing{Step: step, Race: n}
	if err := e.quietRaces(func(r run.Racing) bool { return r == racing }); err != nil {
		return run.Job{}, err
	}
	if quiet := e.quiet[racing]; quiet != nil {
		return run.Job{Schedule: s, Like: quiet, Alike: e.raceEnds(racing), Last: step}, nil
	}
	return run.Job{}, fmt.Errorf("replay token: race %d does nothing in step %d", n, step)
}

// overtakenJob returns the job that plays a delete which was overtaken.
func (e *exploration) overtakenJob(d schedule.Disturbance) (run.Job, error) {
	p := *e.plan
	p.Keep = []plan.Rule{plan.SameInstant}
	all := slices.DeleteFunc(p.Overtakings(), func(o plan.Overtaking) bool { return o.Disturbance() != d })
	jobs, err := e.overtaking(all)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("replay token: %s overtakes no delete: the operator puts no finalizer on an object at call %d, or call %d comes too late", d, d.ReadAt(), d.At)
	}
	if err != nil {
		return run.Job{}, err
	}
	return jobs[0], nil
}

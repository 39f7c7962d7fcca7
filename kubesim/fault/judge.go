package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// present returns what there is now on both sides, without what differs from run to run.
func (p *play) present() history.State {
	var objects []state.Object
	for _, row := range p.db.Rows() {
		if d := p.object(row.Key, row.Data, row.Rev); d.object != nil {
			objects = append(objects, state.Object{Group: d.resource.Group, Resource: d.resource.Resource, Object: d.object})
		}
	}
	return state.Of(objects, p.resources(), state.Options{Foreign: slices.Concat(p.scenario.Foreign, p.scenario.Operator.Ignored), Masked: p.explorer.masked})
}

func sameState(a, b history.State) bool { return state.Equal(a, b) }

// judge holds a run against all invariants.
func (e *explorer) judge(to *Report, r result, j job) {
	if r.play.void {
		if to.Pruned != nil {
			to.Pruned[TooEarly]++
		}
		return
	}
	like := j.closest(r.run)
	var found []history.Violation
	if r.err != nil {
		found = append(found, restless(r))
	}
	if r.err == nil || errors.Is(r.err, errRestless) {
		found = append(found, e.against(like)(r.run)...)
	}
	if j.endsRight(r.run) { // then an ordinary delete leaves the same
		found = slices.DeleteFunc(found, func(v history.Violation) bool { return v.Invariant == "I2" })
	}
	if found = e.unwaived(found); len(found) > 0 {
		to.Findings = append(to.Findings, e.finding(r, j, like, found))
	}
}

// unwaived leaves out what the exploration is not to look at.
func (e *explorer) unwaived(found []history.Violation) []history.Violation {
	return slices.DeleteFunc(found, func(v history.Violation) bool { return slices.Contains(e.options.waived, v.Invariant) })
}

// against returns what judges runs that are held against a run.
func (e *explorer) against(like *history.Run) func(*history.Run) []history.Violation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judges == nil {
		e.judges = map[*history.Run]func(*history.Run) []history.Violation{}
	}
	find, ok := e.judges[like]
	if !ok {
		find = invariant.Against(like)
		e.judges[like] = find
	}
	return find
}

// restless is the violation of a run that could not be played to its end.
func restless(r result) history.Violation {
	if errors.Is(r.err, errRestless) {
		return history.Violation{Invariant: "I13", Title: "no hot loop", Message: r.err.Error() + ": " + busiest(r.run), Call: history.Nobody}
	}
	return history.Violation{Invariant: "I1", Title: "ends as without the disturbance", Message: r.err.Error(), Call: history.Nobody}
}

// judgeAccess holds the operator's roles against what it asked for in all runs.
func (e *explorer) judgeAccess(to *Report) {
	if e.roles == nil {
		return
	}
	to.access = (*history.Access)(e.roles.Access(e.audit.Uses()))
	if len(to.Findings) > 0 {
		return // what was broken may be because of it, or keep it from being asked
	}
	found := e.unwaived(check("I15")(&history.Run{Access: to.access}, &history.Run{}))
	if len(found) > 0 {
		v := found[0]
		to.Findings = append(to.Findings, Finding{
			Token: schedule(nil).token(e.scenario.Name), Violations: shown(found), Text: v.Title + " (" + v.Invariant + "): " + v.Message,
		})
	}
}

// check returns the invariant with the given id.
func check(id string) func(r, undisturbed *history.Run) []history.Violation {
	all := invariant.All()
	return all[slices.IndexFunc(all, func(c invariant.Check) bool { return c.ID == id })].Find
}

// judgeSilences looks at each silence of a run that kept several.
func (e *explorer) judgeSilences(to *Report, r result) {
	var found []history.Violation
	for i := range r.run.Silences {
		run := *r.run
		run.Silence = &r.run.Silences[i]
		found = append(found, check("I5")(&run, &run)...)
	}
	if found = e.unwaived(found); len(found) > 0 {
		to.Findings = append(to.Findings, e.finding(r, job{}, r.run, found[:1]))
	}
}

// shown are violations as users hold them.
func shown(found []history.Violation) []Violation {
	all := make([]Violation, len(found))
	for i, v := range found {
		all[i] = Violation(v)
	}
	return all
}

func (e *explorer) finding(r result, j job, like *history.Run, found []history.Violation) Finding {
	token := j.schedule.token(e.scenario.Name)
	text := report.Text(report.Input{
		Run: r.run, Undisturbed: like, Violations: found, Token: token, Test: e.test, Package: ownPackage(),
	})
	return Finding{Token: token, Violations: shown(found), Text: text, job: j, step: firstFault(r.run)}
}

// ownPackage is the import path of the package that is tested, as the go command wrote it into
// the test's binary: that of the folder, also for tests in a package NAME_test. It is empty if
// the test was built from files that were named one by one, or by another tool.
func ownPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return importPath(info.Path)
}

func importPath(binary string) string {
	path, ok := strings.CutSuffix(binary, ".test")
	if !ok || path == "command-line-arguments" || strings.HasPrefix(path, "_") {
		return ""
	}
	return path
}

// replay plays one schedule.
func (e *explorer) replay(t *testing.T, token string) (Report, error) {
	scenario, s, err := parseToken(token)
	if err != nil {
		return Report{}, err
	}
	out := Report{Scenario: e.scenario.Name, Schedules: map[Kind]int{}, Pruned: map[Rule]int{}}
	if scenario != e.scenario.Name {
		out.Notes = []string{fmt.Sprintf("-fault.replay names scenario %q, so nothing was played", scenario)}
		return out, nil // it may be of another one in the same test
	}
	reference, err := e.undisturbed(t)
	if err != nil {
		return out, err
	}
	if len(s) == 0 {
		return out, e.judgeUndisturbed(t, &out, reference)
	}
	j, err := e.jobOf(t, s, reference)
	if err != nil {
		return out, err
	}
	err = e.playAll(t, []job{j}, func(j job, r result) {
		for _, f := range r.run.Faults {
			out.Disturbed = append(out.Disturbed, f.Kind+" at "+f.At)
		}
		e.judge(&out, r, j)
	})
	if err == nil && j.like != nil && len(out.Disturbed) < len(s.disturbing()) {
		err = fmt.Errorf("the schedule of replay token %s disturbs nothing any more: the undisturbed run has %d calls, and some of the token's numbers are beyond what happens", token, len(reference.run.Calls))
	}
	return out, err
}

// jobOf returns the job that plays a schedule from the beginning.
func (e *explorer) jobOf(t *testing.T, s schedule, reference result) (job, error) {
	races := len(e.scenario.raceSteps())
	for _, d := range s {
		if d.kind == overtaken {
			return e.overtakenJob(t, d, reference)
		}
		n, err := strconv.Atoi(d.arg)
		if d.kind != race && d.kind != later {
			continue
		}
		if err != nil || n < 0 || n >= races {
			return job{}, fmt.Errorf("replay token: the scenario has %d races, %q is none of them", races, d.arg)
		}
		if d.kind == later {
			j := e.quietRace(racing{d.at, n}, reference.run)
			j.like = nil
			return j, nil
		}
		like, err := e.quietRaces(t, &Report{}, reference)
		if err != nil {
			return job{}, err
		}
		step := stepOf(reference.run, d.at)
		if quiet := like[racing{step, n}]; quiet != nil {
			return job{schedule: s, like: quiet, last: step}, nil
		}
		return job{}, fmt.Errorf("replay token: race %d does nothing in step %d", n, step)
	}
	last := 0
	if i := slices.IndexFunc(s, func(d disturbance) bool { return d.kind == forged }); i >= 0 {
		last = stepOf(reference.run, s[i].at)
	}
	if i := slices.IndexFunc(s, func(d disturbance) bool { return d.kind == hangs }); i >= 0 && s[i].at < len(reference.play.points) {
		last = reference.play.points[s[i].at].step
	}
	return job{schedule: s, like: reference.run, last: last}, nil
}

// Package judge compares runs with what must hold in every run, and says what was broken.
package judge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// Finding is a run that broke an invariant.
type Finding struct {
	// Token replays it.
	Token string
	// Violations are what it broke; at least one.
	Violations []history.Violation
	// Text is the whole account for a reader.
	Text string
	// Job is what was played, Step the step during which the run was disturbed first.
	Job  run.Job
	Step int
}

// Group is the same for findings in which the same is wrong, by kind and field, if that ends otherwise also by the step that was
// disturbed: the code that creates something and the code that changes it may have the same effect and not the same bug. Forgeries
// are by themselves.
func (f Finding) Group() string {
	v := f.Violations[0]
	group := v.Invariant + " " + strings.Join(v.Subjects, ", ")
	if v.Invariant == "I1" {
		group += fmt.Sprint(" in step ", f.Step)
	}
	if f.Job.Schedule.Has(schedule.Forged) { // it is about what the operator believes
		group += " by a forgery"
	}
	return group
}

// Rank is the place of a finding in the order of how bad it is, the worst first.
func (f Finding) Rank() int { return invariant.Rank(f.Violations[0].Invariant) }

// Judge judges the runs of one scenario. It is safe for concurrent use.
type Judge struct {
	Scenario string
	// Test is the name of the test, for the command that replays a finding.
	Test string
	// Whole shows all calls of a run in the text of a finding.
	Whole bool
	// Waived are ids of invariants that may be broken.
	Waived []string

	mu     sync.Mutex
	all    map[*history.Run]func(*history.Run) []history.Violation // by what they compare runs with
	known  map[string]bool                                         // what the undisturbed run breaks, by subject
	habits []string
	waived map[string]int

	excused map[*history.Run][]string // subjects, by what runs are compared with
}

// Find returns what a run breaks; false if that is nothing.
func (j *Judge) Find(job run.Job, r run.Result) (Finding, bool) {
	like := closest(job, r.Run)
	var found []history.Violation
	if r.Err != nil {
		found = append(found, unfinished(r))
	}
	switch {
	case r.Err == nil || errors.Is(r.Err, run.ErrRestless):
		found = append(found, j.against(like)(r.Run)...)
	case len(job.Schedule) > 0: // what an earlier step ended with is why this one failed
		found = append(invariant.One("I1")(r.Run, like), found...)
	}
	if endsRight(job, r.Run) { // then an ordinary delete leaves the same
		found = slices.DeleteFunc(found, func(v history.Violation) bool { return v.Invariant == "I2" })
	}
	if job.Schedule.Has(schedule.Replaced) { // of the rest there is nothing to compare it with
		found = slices.DeleteFunc(found, func(v history.Violation) bool { return v.Invariant != "I10" })
	}
	if job.Schedule.Has(schedule.LateWrite, schedule.Frozen, schedule.LateEffect) { // what the write itself says was true when it was sent
		found = slices.DeleteFunc(found, func(v history.Violation) bool {
			return !slices.Contains([]string{"I1", "I2", "I3", "I6", "I10", "I13", "I17"}, v.Invariant)
		})
	}
	if len(job.Schedule) > 0 {
		return j.finding(job, r, like, j.blamed(j.unknown(found), like))
	}
	// Its silence is judged by a run that keeps one after each step, see [Judge.Silences].
	found = slices.DeleteFunc(found, func(v history.Violation) bool { return v.Invariant == "I5" })
	j.learn(found)
	return j.finding(job, r, like, found)
}

// Silences returns what broke the silence of an undisturbed run that was watched after each step, and
// what else went wrong because of it, such as an expectation that was not met.
func (j *Judge) Silences(r run.Result) (Finding, bool) {
	var found []history.Violation
	if errors.Is(r.Err, run.ErrRestless) {
		found = append(found, unfinished(r))
	}
	if run.IsUnmet(r.Err) {
		found = append(found, history.Violation{
			Invariant: "I1", Title: "ends as without the disturbance", Message: "with silence and a restart after each step, " + r.Err.Error(),
			Call: history.Nobody, Subjects: []string{"expectation after silence"},
		})
	}
	if r.Leaked { // after a restart, if the first process left nothing
		found = append(found, j.unknown(invariant.One("I17")(r.Run, r.Run))...)
	}
	found = append(found, invariant.Asleep(r.Run)...)
	for i := range r.Run.Silences {
		one := *r.Run
		one.Silence = &r.Run.Silences[i]
		for _, v := range invariant.One("I5")(&one, &one) {
			same := func(o history.Violation) bool { return slices.Equal(o.Subjects, v.Subjects) }
			if at := slices.IndexFunc(found, same); at < 0 {
				found = append(found, v)
			} else if found[at].Harmless && !v.Harmless {
				found[at] = v
			}
		}
	}
	for _, v := range found {
		if v.Harmless && !slices.Contains(j.habits, v.Message) {
			j.habits = append(j.habits, v.Message)
		}
	}
	j.learn(found)
	return j.finding(run.Job{}, r, r.Run, found)
}

// Habits are what the operator does without a disturbance and without harm although it should not.
func (j *Judge) Habits() []string { return j.habits }

// HowOftenWaived is in how many runs an invariant was broken that is waived.
func (j *Judge) HowOftenWaived(id string) int { return j.waived[id] }

// learn notes what the undisturbed run breaks. The others are not blamed for it again.
func (j *Judge) learn(found []history.Violation) {
	if j.known == nil {
		j.known = map[string]bool{}
	}
	for _, v := range found {
		for _, s := range v.Subjects {
			j.known[v.Invariant+s] = true
		}
	}
}

// unknown leaves out what the undisturbed run breaks as well.
func (j *Judge) unknown(found []history.Violation) []history.Violation {
	return slices.DeleteFunc(found, func(v history.Violation) bool {
		return !slices.ContainsFunc(v.Subjects, func(s string) bool { return !j.known[v.Invariant+s] })
	})
}

// Access returns what no role allows although the operator asked for it in some run.
func (j *Judge) Access(a *history.Access) (Finding, bool) {
	found := j.unwaived(invariant.One("I15")(&history.Run{Access: a}, &history.Run{}))
	if len(found) == 0 {
		return Finding{}, false
	}
	v := found[0]
	return Finding{
		Token: schedule.Schedule(nil).Token(j.Scenario), Violations: found, Text: fmt.Sprintf("%s (%s, %s)", v.Message, v.Invariant, v.Title),
	}, true
}

func (j *Judge) finding(job run.Job, r run.Result, like *history.Run, found []history.Violation) (Finding, bool) {
	if found = j.unwaived(found); len(found) == 0 {
		return Finding{}, false
	}
	found = titled(found, like)
	token := job.Schedule.Token(j.Scenario)
	text := report.Text(report.Input{
		Run: r.Run, Undisturbed: like, Violations: found, Token: token, Test: j.Test, Package: ownPackage(), Whole: j.Whole,
		AtRest: job.Schedule.Has(schedule.Later), Unended: r.Err != nil,
	})
	f := Finding{Token: token, Violations: found, Text: text, Job: job}
	if all := r.Run.Faults; len(all) > 0 {
		f.Step = all[0].Step
	}
	return f, true
}

// unwaived leaves out what does not count.
func (j *Judge) unwaived(found []history.Violation) []history.Violation {
	var waived []string
	found = slices.DeleteFunc(found, func(v history.Violation) bool {
		if v.Harmless || !slices.Contains(j.Waived, v.Invariant) {
			return v.Harmless
		}
		waived = append(waived, v.Invariant)
		return true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waived == nil {
		j.waived = map[string]int{}
	}
	slices.Sort(waived)
	for _, id := range slices.Compact(waived) {
		j.waived[id]++
	}
	return found
}

// against returns what judges runs that are compared with a run.
func (j *Judge) against(like *history.Run) func(*history.Run) []history.Violation {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all == nil {
		j.all = map[*history.Run]func(*history.Run) []history.Violation{}
	}
	find, ok := j.all[like]
	if !ok {
		find = invariant.Against(like)
		j.all[like] = find
	}
	return find
}

// unfinished is the violation of a run that could not be played to its end.
func unfinished(r run.Result) history.Violation {
	if errors.Is(r.Err, run.ErrRestless) {
		return history.Violation{
			Invariant: "I13", Title: "no hot loop", Message: r.Err.Error() + ": " + Busiest(r.Run), Call: lastWrite(r.Run), Subjects: []string{"never comes to rest"},
		}
	}
	return history.Violation{
		Invariant: "I1", Title: "ends as without the disturbance", Message: r.Err.Error(), Call: history.Nobody, Subjects: []string{"never ends"},
	}
}

// goneOn is how many reconciles or writes at the end of a run show what goes on.
const goneOn = 20

// Busiest says what goes on and on at the end of a run.
func Busiest(r *history.Run) string {
	passes := slices.DeleteFunc(slices.Clone(r.Passes), isCutOff)
	if len(passes) == 0 {
		passes = r.Passes
	}
	passes = passes[max(0, len(passes)-goneOn):]
	if len(passes) == 0 {
		return "no reconcile ran; look for a goroutine that calls the API in a loop"
	}
	last := passes[len(passes)-1]
	if isOutside(r) {
		return "no reconcile makes the calls that go on and on; look for a goroutine that calls the API in a loop" + writtenLast(r)
	}
	text := fmt.Sprintf("controller %s reconciles %s again and again", last.Controller, last.Object)
	switch span := last.Begin.Sub(passes[0].Begin); {
	case len(passes) == 1:
	case span == 0: // the clock moves only when nothing else does, so this may be no more than a wait for a cache
		text += " at one moment"
	default:
		text += fmt.Sprintf(", the last %d times within %v", len(passes), span)
	}
	if last.Err != "" && !strings.Contains(last.Err, disturb.ErrDead.Error()) {
		text += ", with error: " + last.Err
	}
	return text + writtenLast(r)
}

// writtenLast names the last write, if there is one.
func writtenLast(r *history.Run) string {
	if i := lastWrite(r); i != history.Nobody {
		return "; its last write is " + r.Calls[i].What
	}
	return ""
}

// isOutside reports whether many writes were made since the last reconcile began, by none.
func isOutside(r *history.Run) bool {
	n := 0
	for i, c := range slices.Backward(r.Calls) {
		switch {
		case i < r.Passes[len(r.Passes)-1].First || c.Pass != history.Nobody:
			return false
		case isWrite(&c):
			n++
		}
		if n == goneOn {
			return true
		}
	}
	return false
}

// isWrite reports whether a call writes to what an operator works on.
func isWrite(c *history.Call) bool {
	return c.Write && (c.Side == history.External || !history.Housekeeping(c.Group, c.Resource))
}

// lastWrite is the call that wrote last to what an operator works on, [history.Nobody] if none did.
func lastWrite(r *history.Run) int {
	for i, c := range slices.Backward(r.Calls) {
		if isWrite(&c) {
			return i
		}
	}
	return history.Nobody
}

// isCutOff reports whether a pass was still running when its process was stopped, so that its error, if it has one, is our doing.
// An operator's own contexts may be canceled, too.
func isCutOff(p history.Pass) bool {
	return !p.Ended || strings.Contains(p.Err, disturb.ErrDead.Error()) || strings.Contains(p.Err, context.Canceled.Error())
}

// closest is the run that a run is compared with: of those that are right, one that ends the same.
func closest(j run.Job, r *history.Run) *history.Run {
	if j.Like == nil {
		return r
	}
	if i := slices.IndexFunc(j.Alike, func(like *history.Run) bool { return endsAs(r, like) }); i >= 0 {
		return j.Alike[i]
	}
	return j.Like
}

// endsRight reports whether a run ends as one of several that are right.
func endsRight(j run.Job, r *history.Run) bool {
	return slices.ContainsFunc(j.Alike, func(like *history.Run) bool { return endsAs(r, like) })
}

func endsAs(r, like *history.Run) bool {
	last := len(r.Steps) - 1
	return last >= 0 && last < len(like.Steps) && state.Matches(like.Steps[last].State, r.Steps[last].State)
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

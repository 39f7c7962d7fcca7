package fault

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// renewal is what is known of an object that a race re-creates in a step. Re-created at rest, it may end otherwise than when it
// was created first: data are kept on purpose, restarts are counted. But nothing may stay in deletion, and an
// operator that comes to the end of a first creation if the user acts at another moment should do so at rest.
type renewal struct {
	at      run.Racing
	created int          // the step that creates the object
	once    *history.Run // in which it was created and never changed; nil if that could not be played
	rest    *history.Run // in which it was created again when all was quiet
	changed bool         // steps since then have changed it
	alone   bool         // and nothing else
	broken  bool         // it breaks something that needs no comparison
	wrong   bool         // it is no yardstick for others

	well schedule.Schedule // the first race that ended as the first creation; nil if there was none
}

// renew learns how objects end that are created once and never changed, as users re-create them, and finds what
// stays in deletion when they are re-created at rest.
func (e *exploration) renew(asked map[run.Racing]bool) error {
	var jobs []run.Job
	for n, race := range e.scenario.raceSteps() {
		for step := 1; race.again != nil && step <= len(e.scenario.Steps); step++ {
			at := run.Racing{Step: step, Race: n}
			created := e.creationOf(race.again.object, step)
			changes, others, known := e.changesOf(race.again.object, created, step)
			if !asked[at] || e.quiet[at] == nil || created == 0 || !known {
				continue
			}
			w := &renewal{at: at, created: created, rest: e.quiet[at], broken: e.broken[at], changed: len(changes) > 0, alone: !others}
			e.renewals[at] = w
			switch {
			case !w.changed:
				w.once = e.onceCreated(step, e.reference.Run.Steps[step].State)
			case w.alone:
				w.once = e.onceCreated(step, e.reference.Run.Steps[created].State)
			default:
				j := e.quietRace(at)
				j.Like, j.Extra, j.Without = nil, nil, changes
				jobs = append(jobs, j)
			}
		}
	}
	err := e.play("runs without a change", jobs, func(j run.Job, r run.Result) {
		if !r.Void && r.Err == nil {
			e.relate(r.Run)
			e.renewals[j.Racing].once = e.onceCreated(j.Last, r.Run.Steps[j.Last].State)
		}
	})
	if err != nil {
		return err
	}
	return e.findStuck(asked)
}

func (e *exploration) onceCreated(step int, s history.State) *history.Run {
	r := e.reference.Run.EndingAs(step, s)
	r.Title = "after the first creation"
	return r
}

// creationOf is the last step so far that creates an object, if it creates it in this form; 0 if none does.
func (e *exploration) creationOf(obj client.Object, step int) int {
	for i := step; i > 0; i-- {
		if does := e.scenario.Steps[i-1].object; does != nil && isSameObject(does, obj) {
			if reflect.DeepEqual(does, obj) {
				return i
			}
			return 0
		}
	}
	return 0
}

// changesOf lists the steps between two that change or delete an object. It says whether there are others, and whether it is known
// of all what they change.
func (e *exploration) changesOf(obj client.Object, from, to int) (changes []int, others, known bool) {
	for i := from + 1; i <= to; i++ {
		does := e.scenario.Steps[i-1]
		switch {
		case does.changed != nil && isSameObject(does.changed, obj):
			changes = append(changes, i)
			others = others || does.Wait > 0
		case does.Do == nil || does.onObject:
			others = true
		default:
			return nil, false, false
		}
	}
	return changes, others, true
}

// sortedRenewals are those of which the end of a first creation is known, in the order of their steps and races.
func (e *exploration) sortedRenewals() (all []*renewal) {
	for _, w := range e.renewals {
		if w.once != nil {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *renewal) int {
		return cmp.Or(cmp.Compare(a.at.Step, b.at.Step), cmp.Compare(a.at.Race, b.at.Race))
	})
	return all
}

// findStuck finds objects that stay in deletion when another one is re-created at rest. Races in the same step are compared with the
// first creation then.
func (e *exploration) findStuck(asked map[run.Racing]bool) error {
	var all []*renewal
	for _, w := range e.sortedRenewals() {
		if asked[w.at] && e.isStuck(w, w.rest.Steps[w.at.Step].State) {
			all = append(all, w)
		}
	}
	return e.findWrong(all, e.isStuck)
}

// isStuck reports whether a state has an object in deletion that is not so after the first creation, nor if nobody disturbs.
func (e *exploration) isStuck(w *renewal, got history.State) bool {
	step := w.at.Step
	return slices.ContainsFunc(state.InDeletion(got), func(key string) bool {
		return !slices.Contains(state.InDeletion(w.once.Steps[step].State), key) &&
			!slices.Contains(state.InDeletion(e.reference.Run.Steps[step].State), key)
	})
}

// findWrong plays re-creations at rest again, with all the time that the operator may take until they end as first creations. Those
// that still end wrongly are findings.
func (e *exploration) findWrong(all []*renewal, isWrong func(*renewal, history.State) bool) error {
	var jobs []run.Job
	for _, w := range all {
		j := e.quietRace(w.at)
		goal := *w.once
		goal.Steps = append(slices.Clone(goal.Steps), goal.Steps[w.at.Step])
		j.Goal = &goal
		jobs = append(jobs, j)
	}
	return e.play("re-creations at rest", jobs, func(j run.Job, r run.Result) {
		w := e.renewals[j.Racing]
		if r.Void || r.Err != nil || !isWrong(w, r.Run.Steps[j.Last+1].State) {
			return
		}
		elsewhere := ""
		if w.well != nil {
			elsewhere = fmt.Sprintf("; re-created at another moment (%s), it ends as after the first creation", w.well.Token(e.scenario.Name))
		}
		f, ok := e.judge.Recreated(j, r, w.once, elsewhere)
		if !ok {
			return
		}
		w.wrong, e.quiet[w.at] = true, w.once
		if !w.broken {
			e.add(f)
		}
	})
}

// noteRenewal notes the first race that ended as the first creation although a re-creation at rest does not. It counts only after the
// step that creates the object, when all that may outlive it existed, and if the change that came before is not the cause.
func (e *exploration) noteRenewal(j run.Job, r run.Result) {
	if len(j.Schedule) != 1 || j.Schedule[0].Kind != schedule.Race || r.Void || r.Err != nil {
		return
	}
	w := e.renewals[racingIn(j)]
	if w == nil || w.once == nil || w.wrong || !w.alone || w.at.Step == w.created || w.well != nil && w.well[0].At < j.Schedule[0].At {
		return
	}
	if e.judge.EndsAs(r.Run, w.once) && e.endsOtherwise(w) {
		w.well = j.Schedule
	}
}

// endsOtherwise reports whether an object that is re-created at rest ends otherwise than after its first creation, and in the same
// way when nothing was changed before.
func (e *exploration) endsOtherwise(w *renewal) bool {
	first := e.renewals[run.Racing{Step: w.created, Race: w.at.Race}]
	if first == nil || first.once == nil {
		return false
	}
	before := e.judge.Differing(first.rest, first.once)
	return slices.ContainsFunc(e.judge.Differing(w.rest, w.once), func(s string) bool { return slices.Contains(before, s) })
}

// findAvoidable finds objects that end otherwise when they are re-created at rest, but not at another moment, if there is time left.
func (e *exploration) findAvoidable() error {
	var all []*renewal
	for _, w := range e.sortedRenewals() {
		if w.well != nil && !w.wrong {
			all = append(all, w)
		}
	}
	err := e.findWrong(all, func(w *renewal, got history.State) bool {
		return !state.Matches(w.once.Steps[w.at.Step].State, got)
	})
	if isOver(err) {
		return nil
	}
	return err
}

// findAgain finds what is wrong with a re-creation at rest, for a replay with this token.
func (e *exploration) findAgain(at run.Racing, token string) error {
	err := e.quietRaces(func(r run.Racing) bool { return r == at })
	if w := e.renewals[at]; err == nil && w != nil && !w.wrong {
		jobs := slices.DeleteFunc(e.plan.Racing(e.quiet), func(j run.Job) bool { return racingIn(j) != at })
		err = e.play("races", jobs, e.noteRenewal)
	}
	if err == nil {
		err = e.findAvoidable()
	}
	if *replayFlag != "" {
		e.report.Findings = slices.DeleteFunc(e.report.Findings, func(f Finding) bool { return f.Token != token })
	}
	return err
}

package fault

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// spare lists, of the races that the scenario does not name itself, those that delete what its other objects
// depend on, and says so in a note: what an operator does without such an object is usually right.
func (e *exploration) spare() map[int]bool {
	if e.scenario.Races != nil {
		return nil
	}
	spared := map[int]bool{}
	var names []string
	for n, race := range e.scenario.raceSteps() {
		if race.victim == nil || !e.isDependency(race.victim) {
			continue
		}
		spared[n] = true
		if name := race.victim.GetName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		e.report.Notes = append(e.report.Notes, fmt.Sprintf(
			"no race deletes %s, which objects that are created later may depend on; name Delete and Recreate in Races if the operator is to cope with that", strings.Join(names, ", ")))
	}
	return spared
}

// since is, for the races that the scenario does not name itself, the step that creates the object which they delete
// or create again: nobody does that before.
func (e *exploration) since() map[int]int {
	since := map[int]int{}
	if e.scenario.Races != nil {
		return since
	}
	for n, race := range e.scenario.raceSteps() {
		if race.victim == nil {
			continue
		}
		since[n] = 1 + slices.IndexFunc(e.scenario.Steps, func(s Step) bool { return s.object != nil && isSameObject(s.object, race.victim) })
	}
	return since
}

// isDependency reports whether a step creates an object before another one, and the operator works on the
// other one alone: it neither writes the first nor reconciles it.
func (e *exploration) isDependency(obj client.Object) bool {
	found := false
	for _, step := range e.scenario.Steps {
		switch {
		case step.object == nil:
		case isSameObject(step.object, obj):
			if e.worksOn(step.object) {
				return false
			}
			found = true
		case found && e.worksOn(step.object):
			return true
		}
	}
	return false
}

// isSameObject reports whether a and b have the same kind and name. One of them may be from a manifest, and the other of a Go type.
func isSameObject(a, b client.Object) bool {
	group, other := a.GetObjectKind().GroupVersionKind().Group, b.GetObjectKind().GroupVersionKind().Group
	return kindOf(a) == kindOf(b) && (group == other || isTyped(a) || isTyped(b)) &&
		a.GetName() == b.GetName() && cmp.Or(a.GetNamespace(), metav1.NamespaceDefault) == cmp.Or(b.GetNamespace(), metav1.NamespaceDefault)
}

// isTyped reports whether an object does not say what kind it is of, since its Go type does.
func isTyped(obj client.Object) bool { return obj.GetObjectKind().GroupVersionKind().Kind == "" }

// kindOf is the kind of an object. A Go type has the name of its kind.
func kindOf(obj client.Object) string {
	if !isTyped(obj) {
		return obj.GetObjectKind().GroupVersionKind().Kind
	}
	name := fmt.Sprintf("%T", obj)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// worksOn reports whether the operator writes an object that a step creates, or has reconciles of it. A write that
// changes only its owners does not count: what an object depends on is often deleted together with it.
func (e *exploration) worksOn(obj client.Object) bool {
	r := e.reference.Run
	uids, names, own := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range r.Changes {
		c := &r.Changes[i]
		name := strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
		switch {
		case c.After == nil:
		case c.By == history.User && c.Before == nil && isThat(c.After, obj):
			uids[string(c.After.GetUID())] = true
			names[name] = true
		case c.By == history.Operator && c.Before == nil:
			own[strings.ToLower(c.After.GetKind())+" "+name] = true
		case c.By == history.Operator && uids[string(c.After.GetUID())] && !sameButOwners(c.Before, c.After):
			return true
		}
	}
	return slices.ContainsFunc(r.Passes, func(p history.Pass) bool {
		return names[p.Object] && !own[p.Controller+" "+p.Object] // an object that the operator made may have the same name
	})
}

// sameButOwners reports whether two versions of an object differ in their owners at most.
func sameButOwners(a, b *unstructured.Unstructured) bool {
	without := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetOwnerReferences(nil)
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		return u.Object
	}
	return reflect.DeepEqual(without(a), without(b))
}

// earlyChanges plays, for each step and each change that a race makes early, the run in which the user comes just
// before the step, or creates the object in the changed form if that is what the step does. It shows only what is
// right, so it is not judged.
func (e *exploration) earlyChanges(asked map[run.Racing]bool) error {
	var jobs []run.Job
	for n, race := range e.scenario.raceSteps() {
		for step := 1; race.early && step <= len(e.scenario.Steps); step++ {
			at, before := run.Racing{Step: step, Race: n}, run.Racing{Step: step - 1, Race: n}
			does := e.scenario.Steps[step-1]
			switch {
			case !asked[at] || e.quiet[at] == nil:
			case e.quiet[before] != nil:
				j := e.quietRace(before)
				j.Like, j.Last, j.Racing, j.Early = nil, step, at, true
				jobs = append(jobs, j)
			case does.object != nil && race.changed != nil && isSameObject(does.object, race.changed):
				j := e.quietRace(at)
				j.Like, j.Extra, j.Instead = nil, nil, inSandbox(does.changedBy(race).Do)
				jobs = append(jobs, j)
			}
		}
	}
	return e.play("runs with a change that comes early", jobs, func(j run.Job, r run.Result) {
		if !r.Void && r.Err == nil {
			e.early[j.Racing] = e.reference.Run.EndingAs(j.Last, r.Run.Steps[j.Last].State)
		}
	})
}

// raceEnds are the ends of a step that are as right as that of the run in which the user came when all was quiet: an
// object that was re-created may end as if nobody had touched it, one that was deleted in the step that creates
// it as if it had never been there, and one that was changed as if the user had come before the step.
func (e *exploration) raceEnds(at run.Racing) []*history.Run {
	if ends, ok := e.ends[at]; ok || e.quiet[at] == nil {
		return ends
	}
	reference, race := e.reference.Run, e.scenario.raceSteps()[at.Race]
	var ends []*history.Run
	switch created := e.scenario.Steps[at.Step-1].object; {
	case e.early[at] != nil:
		ends = append(ends, e.early[at])
	case race.again != nil:
		ends = append(ends, reference)
		if w := e.renewals[at]; w != nil && w.once != nil && w.changed {
			ends = append(ends, w.once)
		}
		if w := e.renewals[at]; w != nil && w.wrong {
			ends = append(ends, w.rest)
		}
	case race.changed != nil && race.patch == "" && created != nil && isSameObject(race.changed, created):
		ends = append(ends, reference.EndingAs(at.Step, reference.Steps[at.Step-1].State))
	}
	if e.ends == nil {
		e.ends = map[run.Racing][]*history.Run{}
	}
	e.ends[at] = ends
	return ends
}

// isThat reports whether u may be what a step's object became.
func isThat(u *unstructured.Unstructured, obj client.Object) bool {
	return u.GetName() == obj.GetName() && u.GetKind() == kindOf(obj) && (obj.GetNamespace() == "" || obj.GetNamespace() == u.GetNamespace())
}

// racing lists schedules with races. What they are compared with is played first: all if there is no limit, else for those that
// are left.
func (e *exploration) racing(list func(map[run.Racing]*history.Run) []run.Job, most int) ([]run.Job, error) {
	all := map[run.Racing]*history.Run{}
	for _, r := range e.allRacings() {
		all[r] = e.reference.Run
	}
	jobs := e.plan.Thin(list(all), most)
	wanted := map[run.Racing]bool{}
	for _, j := range jobs {
		wanted[racingIn(j)] = true
	}
	err := e.quietRaces(func(r run.Racing) bool { return most <= 0 || wanted[r] }) // each shows something by itself, too
	jobs = slices.DeleteFunc(jobs, func(j run.Job) bool { return e.quiet[racingIn(j)] == nil })
	for i := range jobs {
		at := racingIn(jobs[i])
		jobs[i].Like, jobs[i].Alike = e.quiet[at], e.raceEnds(at)
	}
	return jobs, err
}

// allRacings are all races that can be played.
func (e *exploration) allRacings() []run.Racing {
	if e.racings == nil {
		e.racings = e.plan.QuietRaces()
	}
	return e.racings
}

// racingIn is the race in a job's schedule, and its step.
func racingIn(j run.Job) run.Racing {
	for _, d := range j.Schedule {
		if n, err := strconv.Atoi(d.Arg); err == nil && d.Kind == schedule.Race {
			return run.Racing{Step: j.Last, Race: n}
		}
	}
	return run.Racing{}
}

// quietRaces plays, for the steps and races that are wanted, the run in which the user comes when the step is over and all is
// quiet, unless that was played before. What such a run breaks by itself is found too.
func (e *exploration) quietRaces(wanted func(run.Racing) bool) error {
	if e.asked == nil {
		e.asked, e.broken = map[run.Racing]bool{}, map[run.Racing]bool{}
		e.quiet, e.early, e.renewals = map[run.Racing]*history.Run{}, map[run.Racing]*history.Run{}, map[run.Racing]*renewal{}
	}
	asked := map[run.Racing]bool{}
	var jobs []run.Job
	all := e.allRacings()
	for _, r := range all {
		needed := slices.ContainsFunc(all, func(o run.Racing) bool { return wanted(o) && e.needs(o, r) })
		if !needed || e.asked[r] {
			continue
		}
		asked[r], e.asked[r] = true, true
		jobs = append(jobs, e.quietRace(r))
	}
	err := e.play("runs with a race at rest", jobs, func(j run.Job, r run.Result) {
		e.broken[j.Racing] = e.find(run.Job{Schedule: j.Schedule}, r)
		if !r.Void && r.Err == nil {
			e.relate(r.Run)
			quiet := r.Run.EndingAs(j.Last, r.Run.Steps[j.Last+1].State)
			quiet.Title = "if the user does so at rest"
			e.quiet[j.Racing] = quiet
		}
	})
	if err == nil {
		err = e.earlyChanges(asked)
	}
	if err != nil {
		return err
	}
	return e.renew(asked)
}

// needs reports whether what races at one moment are compared with needs the run at rest of another one: a race that creates
// an object again those of the same race in all steps, one that may as well come early those in the steps before.
func (e *exploration) needs(at, other run.Racing) bool {
	race := e.scenario.raceSteps()[at.Race]
	return at == other || at.Race == other.Race && (race.again != nil || race.early && other.Step < at.Step)
}

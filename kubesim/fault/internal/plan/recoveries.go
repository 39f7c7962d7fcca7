package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Recovery is the run that follows one crash until the cluster is at rest again.
type Recovery struct {
	job     run.Job
	calls   []history.Call
	objects []string // of the passes
	last    int      // the first call after it
	step    int
	learned run.Learned
}

// NewRecovery keeps of a run with a crash what can be disturbed in it. It is false if the run says nothing,
// or is broken without a second disturbance.
func NewRecovery(j run.Job, r run.Result) (Recovery, bool) {
	if r.Err != nil || r.Void || r.Run == nil {
		return Recovery{}, false
	}
	step := r.Run.StepOf(j.Schedule[0].At)
	rest, ok := r.Learned.Settled[step]
	if !ok {
		return Recovery{}, false
	}
	v := Recovery{job: j, calls: r.Run.Calls, last: rest.Call, step: step, learned: r.Learned}
	for _, p := range r.Run.Passes {
		v.objects = append(v.objects, p.Controller+" "+p.Object)
	}
	return v, true
}

// recoverer plans second disturbances. A second one is not planned if it leads to a state that is known. Two
// processes have the same memory if they have made the same calls since they started and got the same answers.
type recoverer struct {
	*Plan

	// undisturbed are the undisturbed run's calls, by what they are and what came of them.
	undisturbed map[string]bool
	// dead are the durable states that a single crash leaves, or a pair of crashes that is planned.
	dead map[string]bool
	// lived are the processes, from their start up to a call, that were disturbed there already.
	lived map[string]bool
	// quiet are the runs with a race at rest.
	quiet map[run.Racing]*history.Run
	jobs  []run.Job
}

// Recovering disturbs each recovery from a crash once, at each place and in each way. states are the hashes of
// what is durable at the writes of the undisturbed run, like are the runs with a race at rest.
func (p *Plan) Recovering(all []Recovery, states map[run.Point]string, like map[run.Racing]*history.Run) []run.Job {
	r := recoverer{Plan: p, undisturbed: map[string]bool{}, dead: map[string]bool{}, lived: map[string]bool{}, quiet: like}
	reference := p.Reference.Run
	objects := make([]string, len(reference.Passes))
	for i, pass := range reference.Passes {
		objects[i] = pass.Controller + " " + pass.Object
	}
	for i := range reference.Calls {
		c := &reference.Calls[i]
		r.undisturbed[likeness(c, objects, reference.StepOf(i))] = true
	}
	for point, hash := range states {
		r.dead[inStep(hash, reference.StepOf(point.Call))] = true
	}
	for i := range all {
		r.disturb(&all[i], states)
	}
	return r.jobs
}

func inStep(hash string, step int) string { return fmt.Sprint(step, " ", hash) }

// likeness is the same for calls that are the same and come to the same.
func likeness(c *history.Call, objects []string, step int) string {
	return fmt.Sprint(step, " ", objectOf(c, objects), " ", c.What, " ", c.Code, c.Changed, c.Err)
}

// objectOf is the object whose pass makes a call; empty for a call in no pass.
func objectOf(c *history.Call, objects []string) string {
	if c.Pass == history.Nobody || c.Pass >= len(objects) {
		return ""
	}
	return objects[c.Pass]
}

// disturb plans all second disturbances of one recovery.
func (r *recoverer) disturb(v *Recovery, states map[run.Point]string) {
	first := v.job.Schedule[0]
	life := inStep(states[run.Point{Call: first.At, After: first.Kind == schedule.CrashAfter}], v.step) // and what was done since
	for i := first.At + 1; i < min(v.last, len(v.calls)); i++ {
		c := &v.calls[i]
		r.race(v, i, life)
		r.panic(v, i, life)
		life = hash(life, likeness(c, v.objects, v.step))
		kinds := faultsOf(*c)
		switch {
		case r.skipAll(Independent, len(kinds), r.isIndependent(v, c)), r.skipAll(SameState, len(kinds), r.lived[life]):
		default:
			r.lived[life] = true
			for _, kind := range kinds {
				r.add(v, schedule.Disturbance{Kind: kind, At: i})
			}
		}
		if c.Write {
			r.crashAgain(v, i)
		}
	}
	r.delay(v)
}

// hash is what a process started from and has done.
func hash(life, then string) string {
	sum := sha256.Sum256([]byte(life + "\n" + then))
	return string(sum[:])
}

// race lets a user act before a write of the next process, which may have decided on it by what the user changes.
// [Plan.Absences] has those who act before that process has begun.
func (r *recoverer) race(v *Recovery, call int, life string) {
	c := &v.calls[call]
	life = hash(life, schedule.Race)
	if !c.Write || history.Housekeeping(c.Group, c.Resource) || r.skipAll(SameState, r.Races, r.lived[life]) {
		return
	}
	r.lived[life] = true
	for n := range r.Races {
		racing := run.Racing{Step: v.step, Race: n}
		if quiet := r.quiet[racing]; quiet != nil {
			r.add(v, schedule.Disturbance{Kind: schedule.Race, At: call, Arg: strconv.Itoa(n)})
			j := &r.jobs[len(r.jobs)-1]
			j.From, j.Like, j.Alike, j.Last = nil, quiet, r.Ends(racing), v.step
		}
	}
}

// panic lets the author's code panic at each point that the next process of a recovery comes to before a call.
func (r *recoverer) panic(v *Recovery, call int, life string) {
	for n := v.learned.Crashed.Points; n < len(v.learned.Points); n++ {
		at := v.learned.Points[n]
		if at.Calls != call {
			continue
		}
		life = hash(life, schedule.Panic+at.What)
		if !r.skip(SameState, r.lived[life]) {
			r.lived[life] = true
			r.add(v, schedule.Disturbance{Kind: schedule.Panic, At: n})
		}
	}
}

// skipAll counts several schedules that a rule leaves out.
func (r *recoverer) skipAll(rule Rule, n int, applies bool) bool {
	if !applies || slices.Contains(r.Keep, rule) {
		return false
	}
	r.Pruned[rule] += n
	return true
}

// isIndependent reports whether a call has nothing to do with the one at which the process was killed: it is
// about other objects, and the undisturbed run makes it in the same step with the same result.
func (r *recoverer) isIndependent(v *Recovery, c *history.Call) bool {
	killed := &v.calls[v.job.Schedule[0].At]
	return objectOf(c, v.objects) != objectOf(killed, v.objects) && c.What != killed.What &&
		(c.Namespace != killed.Namespace || c.Name != killed.Name || c.Resource != killed.Resource || c.Name == "") &&
		r.undisturbed[likeness(c, v.objects, v.step)]
}

// crashAgain kills the operator before and after a write of a recovery, if that leaves what no other crash leaves.
func (r *recoverer) crashAgain(v *Recovery, call int) {
	for _, after := range []bool{false, true} {
		kind := schedule.CrashBefore
		if after {
			kind = schedule.CrashAfter
		}
		left := inStep(v.learned.States[run.Point{Call: call, After: after}], v.step)
		if !r.skip(SameState, r.dead[left]) {
			r.dead[left] = true
			r.add(v, schedule.Disturbance{Kind: kind, At: call})
		}
	}
}

// delay keeps events from caches during a recovery, lets them come twice, and ends watches.
func (r *recoverer) delay(v *Recovery) {
	at, rest := v.learned.Crashed, v.learned.Settled[v.step]
	could := func(kind string, all []bool, from, to int) {
		for i := from; i < min(to, len(all)); i++ {
			if !r.skip(NothingHeld, !all[i]) {
				r.add(v, schedule.Disturbance{Kind: kind, At: i})
			}
		}
	}
	could(schedule.StaleRead, v.learned.Reads, at.Reads, rest.Reads)
	could(schedule.StalePass, v.learned.Passes, at.Looks, rest.Looks)
	for i := at.Deliveries; i < rest.Deliveries; i++ {
		for n, d := range []schedule.Disturbance{
			{Kind: schedule.Twice}, {Kind: schedule.Late, Arg: "1"}, {Kind: schedule.Gone}, {Kind: schedule.Merged, Arg: "3"},
		} {
			if !r.skip(Alternating, n%2 != i%2) {
				d.At = i
				r.add(v, d)
			}
		}
	}
}

func (r *recoverer) add(v *Recovery, d schedule.Disturbance) {
	j := v.job
	j.Schedule = append(slices.Clone(j.Schedule), d)
	j.States, j.Family, j.Like = false, schedule.Recoveries, nil
	r.jobs = append(r.jobs, j)
}

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
	others  map[int][]schedule.Disturbance // what others do at a call, how long it takes, and what is left of it later
}

// NewRecovery keeps of a run with a crash what can be disturbed in it. It is false if the run says nothing,
// or is broken without a second disturbance.
func (p *Plan) NewRecovery(j run.Job, r run.Result) (Recovery, bool) {
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
	v.others = p.othersIn(r, j.Schedule[0].At+1, v.last)
	return v, true
}

// othersIn are the disturbances of a recovery's calls that are planned as those of an undisturbed run are, by the call.
func (p *Plan) othersIn(r run.Result, from, to int) map[int][]schedule.Disturbance {
	as := &Plan{Reference: r, Replicas: p.Replicas, Keep: p.Keep, Pruned: map[Rule]int{}}
	others := map[int][]schedule.Disturbance{}
	add := func(family schedule.Family, plan func() []run.Job) {
		if !p.wants(family) {
			return
		}
		for _, j := range plan() {
			if d := j.Schedule[0]; d.At >= from && d.At < to {
				others[d.At] = append(others[d.At], d)
			}
		}
	}
	add(schedule.Contention, func() []run.Job { return as.contendingFrom(from) })
	add(schedule.Replacements, as.Replacing)
	add(schedule.SlowCalls, as.Slowing)
	add(schedule.OldCaches, as.Remembering)
	return others
}

func (p *Plan) wants(family schedule.Family) bool { return slices.Contains(p.Wanted, family) }

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
		r.stop(v, i, life)
		r.other(v, i, life)
		r.outlive(v, i, life)
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

// stop lets the author's code panic or hang at each point that the next process of a recovery comes to before a call.
func (r *recoverer) stop(v *Recovery, call int, life string) {
	for n := v.learned.Crashed.Points; n < len(v.learned.Points); n++ {
		at := v.learned.Points[n]
		if at.Calls != call {
			continue
		}
		life = hash(life, schedule.Panic+at.What)
		if r.skip(SameState, r.lived[life]) {
			continue
		}
		r.lived[life] = true
		r.add(v, schedule.Disturbance{Kind: schedule.Panic, At: n})
		if r.wants(schedule.Hangs) && !r.skip(Locked, at.Cache) {
			r.addWithin(v, schedule.Disturbance{Kind: schedule.Hang, At: n})
		}
	}
}

// other lets other controllers write or replace the object of a call, lets the call take long, or kills the process after it
// and lets the caches of the next one be old.
func (r *recoverer) other(v *Recovery, call int, life string) {
	for _, d := range v.others[call] {
		life := hash(life, d.Kind+d.Arg)
		switch {
		case r.skip(SameState, r.lived[life]):
			continue
		case d.Kind == schedule.Replaced:
			r.addWithin(v, d)
		default:
			r.add(v, d)
		}
		r.lived[life] = true
	}
}

// outlive lets a write of the next process be on its way when that one is killed, or lets the process stand still at it, until a
// third one is about to do the same, or has done it: it comes to that, more or less, with as many calls as the second one. Or the
// write takes its effect when the process that got a timeout has done all that follows.
func (r *recoverer) outlive(v *Recovery, call int, life string) {
	c := &v.calls[call]
	if !c.Write || !c.Changed || history.Housekeeping(c.Group, c.Resource) {
		return
	}
	as := call - v.job.Schedule[0].At
	for _, d := range []schedule.Disturbance{
		{Kind: schedule.LateWrite, Arg: strconv.Itoa(as)},
		{Kind: schedule.LateWrite, Arg: strconv.Itoa(as + 1)},
		{Kind: schedule.Frozen, Arg: strconv.Itoa(max(1, as-1))},
		{Kind: schedule.Frozen, Arg: strconv.Itoa(max(1, as))},
		{Kind: schedule.LateEffect, Arg: strconv.Itoa(max(1, v.last-call))},
	} {
		of := hash(life, d.Kind+d.Arg)
		if !r.wants(d.Family()) || d.Kind == schedule.Frozen && c.Pass == history.Nobody || r.skip(SameState, r.lived[of]) {
			continue
		}
		r.lived[of] = true
		d.At = call
		r.add(v, d)
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

// addWithin adds a run that ends with the step in which the recovery is.
func (r *recoverer) addWithin(v *Recovery, d schedule.Disturbance) {
	r.add(v, d)
	r.jobs[len(r.jobs)-1].Last = v.step
}

package plan

import (
	"strconv"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Forging lets a user write the status of an object just before each write of the operator and each
// beginning of a pass.
func (p *Plan) Forging() []run.Job {
	r := p.Reference.Run
	begins := map[int]bool{}
	for _, pass := range r.Passes {
		begins[pass.First] = true
	}
	ways := len(disturb.Statuses(r)) * disturb.Forgeries
	var jobs []run.Job
	moment := 0
	for _, c := range p.calls() {
		step := r.StepOf(c.Index)
		if step == 0 || history.Housekeeping(c.Group, c.Resource) || !c.Write && !begins[c.Index] {
			continue
		}
		moment++
		for n := range ways {
			if !p.skip(Alternating, moment%disturb.Forgeries != n%disturb.Forgeries) {
				j := withArg(schedule.Forged, c.Index, strconv.Itoa(n))
				j.Last = step
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// Replacing lets somebody else's object take the place of each one that the operator deletes, just before that.
func (p *Plan) Replacing() []run.Job {
	var jobs []run.Job
	for _, c := range p.Reference.Run.Calls {
		if c.Verb == "delete" && c.Changed && c.Name != "" && c.Subresource == "" && !history.Housekeeping(c.Group, c.Resource) {
			j := single(schedule.Replaced, c.Index)
			j.Last = p.Reference.Run.StepOf(c.Index)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// Contending lets another controller write each object that the operator changes in a step, before each of these
// writes from one of them on: its annotations, and from the first write of the operator's conditions on a condition of its own.
// Or it puts a finalizer on the object before the first of them.
func (p *Plan) Contending() []run.Job { return p.contendingFrom(0) }

// contendingFrom plans this for the writes from a call on, as if they were the first ones.
func (p *Plan) contendingFrom(first int) []run.Job {
	r := p.Reference.Run
	type object struct{ group, resource, namespace, name string }
	type begin struct {
		of   object
		step int
	}
	held, reported := map[begin]bool{}, map[object]bool{}
	var jobs []run.Job
	for i := range r.Changes {
		h := &r.Changes[i]
		of := object{h.Group, h.Resource, h.Namespace, h.Name}
		if h.Before == nil {
			delete(reported, of) // those of an object that had the name before
		}
		if h.By != history.Operator || h.Call == history.Nobody || history.Housekeeping(h.Group, h.Resource) {
			continue
		}
		reported[of] = reported[of] || h.WroteConditions()
		if c := r.Calls[h.Call]; h.Call < first || h.Before == nil || c.Name == "" || c.ForOthers || p.inSilence(c) {
			continue
		}
		contended := func(what string) {
			jobs = append(jobs, withArg(schedule.Contended, h.Call, what))
		}
		contended("")
		if reported[of] {
			contended(disturb.OfStatus)
		}
		if at := (begin{of, h.Step}); !held[at] && h.Before.GetDeletionTimestamp() == nil {
			held[at] = true
			contended(disturb.OfFinalizer)
		}
	}
	return jobs
}

// Overtaking is a DELETE that read its object just before one call and removes it just after
// the same or a later one.
type Overtaking struct{ Read, Removes, Step int }

// Overtakings lists the deletes that a finalizer of the operator may come too late for. Where none
// is written, it does not matter when a DELETE has begun, and races say the rest.
func (p *Plan) Overtakings() (all []Overtaking) {
	r := p.Reference.Run
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.By != history.Operator || h.Call == history.Nobody || h.Before == nil || h.After == nil || history.Housekeeping(h.Group, h.Resource) ||
			h.Before.GetDeletionTimestamp() != nil || len(h.Before.GetFinalizers()) > 0 || len(h.After.GetFinalizers()) == 0 {
			continue
		}
		step := r.StepOf(h.Call)
		for _, c := range r.Calls[h.Call:] {
			if r.StepOf(c.Index) != step || c.At.Sub(h.At) > disturb.DeleteTakes {
				break
			}
			if c.Index == h.Call || !history.Housekeeping(c.Group, c.Resource) && !p.skip(SameInstant, !decides(c)) {
				all = append(all, Overtaking{h.Call, c.Index, step})
			}
		}
	}
	return all
}

// decides reports whether it matters to anybody that an object goes after a call rather than before:
// the call changed something, or read what the API server has.
func decides(c history.Call) bool {
	return c.Changed || c.Side == history.Kubernetes && c.Pass != history.Nobody
}

// Disturbance is the delete as a part of a schedule.
func (o Overtaking) Disturbance() schedule.Disturbance {
	d := schedule.Disturbance{Kind: schedule.Overtaken, At: o.Removes}
	if o.Read != o.Removes {
		d.Arg = strconv.Itoa(o.Read)
	}
	return d
}

// references are ordinary deletes at the end and at the beginning of one that was overtaken.
func (o Overtaking) references() []schedule.Disturbance {
	return []schedule.Disturbance{
		{Kind: schedule.DeletedAfter, At: o.Removes, Arg: strconv.Itoa(o.Read)},
		{Kind: schedule.DeletedBefore, At: o.Read},
	}
}

// Ends are runs in which a user deletes in the ordinary way, by their disturbance: an overtaken delete
// may end as one of those about it.
type Ends map[schedule.Disturbance]*history.Run

// References returns the jobs that play such runs.
func References(all []Overtaking) []run.Job {
	ends := Ends{}
	var jobs []run.Job
	for _, o := range all {
		for _, d := range o.references() {
			if _, ok := ends[d]; !ok {
				ends[d] = nil
				jobs = append(jobs, run.Job{Schedule: schedule.Schedule{d}, Last: o.Step})
			}
		}
	}
	return jobs
}

// Note notes how one of them ended, unless it says nothing.
func (e Ends) Note(undisturbed *history.Run, j run.Job, r run.Result) {
	if r.Err != nil || r.Void || len(r.Run.Steps) <= j.Last {
		return
	}
	end := undisturbed.EndingAs(j.Last, r.Run.Steps[j.Last].State)
	end.Title = "if the user's delete comes before or after"
	e[j.Schedule[0]] = end
}

// Overtake returns the jobs that play deletes which were overtaken.
func Overtake(all []Overtaking, ends Ends) []run.Job {
	var jobs []run.Job
	for _, o := range all {
		j := run.Job{Schedule: schedule.Schedule{o.Disturbance()}, Last: o.Step}
		for _, d := range o.references() {
			if r := ends[d]; r != nil {
				j.Alike = append(j.Alike, r)
			}
		}
		if len(j.Alike) > 0 { // else there is no end that would be right
			j.Like = j.Alike[0]
			jobs = append(jobs, j)
		}
	}
	return jobs
}

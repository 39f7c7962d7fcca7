package fault

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// An API server's DELETE reads its object, decides by that whether finalizers keep it, asks
// admission, and then removes what is stored under the name: the registry's Delete compares no
// version (k8s.io/apiserver, registry/generic/registry/store.go). What is written in between goes
// with the object. So a finalizer that was written is no promise, for as long as a DELETE takes.

// deleteTakes is how long a DELETE may be under way: the usual timeout of a webhook that it asks.
const deleteTakes = 10 * time.Second

// deletion is a user's DELETE that has read its object and not removed it yet.
type deletion struct {
	end    chan struct{} // closed to let it go on
	done   chan error
	cancel context.CancelFunc
}

// readAt is the call before which an overtaken DELETE read its object.
func (d disturbance) readAt() int {
	if n, err := strconv.Atoi(d.arg); err == nil {
		return n
	}
	return d.at
}

// deleteBefore does what a schedule has deletes do just before a call.
func (p *play) deleteBefore(c *history.Call) {
	for _, d := range p.schedule {
		switch {
		case d.kind == overtaken && d.readAt() == c.Index:
			p.endsWell(p.do(userName, func(context.Context, *World) error { return p.beginDelete(c) }))
		case d.kind == deletedBefore && d.at == c.Index:
			p.noteFault(d, c.Index, "delete of "+c.Name)
			p.endsWell(p.do(userName, func(ctx context.Context, w *World) error { return p.deleteNow(ctx, w, c) }))
		}
	}
}

// actAfter does what a schedule has others do just after a call.
func (p *play) actAfter(c *history.Call) {
	d, ok := p.schedule.find(c.Index, overtaken, deletedAfter)
	if !ok || d.readAt() > c.Index {
		return
	}
	of := &p.run.Calls[d.readAt()]
	p.noteFault(d, c.Index, "delete of "+of.Name)
	if d.kind == deletedAfter {
		p.endsWell(p.do(userName, func(ctx context.Context, w *World) error { return p.deleteNow(ctx, w, of) }))
		return
	}
	p.endsWell(p.do(userName, func(context.Context, *World) error { return p.endDelete() }))
}

// endsWell notes that a delete had nothing to act on, or why the run cannot go on.
func (p *play) endsWell(err error) {
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		p.void = true
	default:
		p.broken = err
	}
}

func (p *play) deleteNow(ctx context.Context, w *World, c *history.Call) error {
	u, err := p.objectOf(c)
	if err != nil {
		return err
	}
	return w.Client.Delete(ctx, u)
}

// beginDelete lets a user's DELETE go as far as to the moment before it removes its object. One
// that ends at once found a finalizer: such a run says nothing.
func (p *play) beginDelete(c *history.Call) error {
	u, err := p.objectOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &deletion{end: make(chan struct{}), done: make(chan error, 1), cancel: cancel}
	read := make(chan struct{})
	ctx = store.HoldDeletes(ctx, func(ctx context.Context) error {
		close(read)
		select {
		case <-d.end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	go func() { d.done <- p.admin.Delete(ctx, u) }()
	select {
	case <-read:
		p.deleting = d
		return nil
	case err := <-d.done:
		cancel()
		p.void = true
		return err
	}
}

// endDelete lets a DELETE that has begun remove its object.
func (p *play) endDelete() error {
	d := p.deleting
	if d == nil {
		p.void = true
		return nil
	}
	p.deleting = nil
	defer d.cancel()
	close(d.end)
	return <-d.done
}

// dropDelete ends a DELETE whose moment never came.
func (p *play) dropDelete() {
	if d := p.deleting; d != nil {
		p.deleting = nil
		d.cancel()
		_ = <-d.done // it was given up
	}
}

// overtakingDelete is a DELETE that read its object just before one call and removes it just after
// the same or a later one.
type overtakingDelete struct{ read, removes, step int }

// overtakings lists the deletes that a finalizer of the operator may come too late for. Where none
// is written, it does not matter when a DELETE has begun, and races say the rest.
func (p *plan) overtakings() (all []overtakingDelete) {
	r := p.reference.run
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.By != operatorName || h.Call == history.Nobody || h.Before == nil || h.After == nil || history.Housekeeping(h.Group, h.Resource) ||
			h.Before.GetDeletionTimestamp() != nil || len(h.Before.GetFinalizers()) > 0 || len(h.After.GetFinalizers()) == 0 {
			continue
		}
		step := stepOf(r, h.Call)
		for _, c := range r.Calls[h.Call:] {
			if stepOf(r, c.Index) != step || c.At.Sub(h.At) > deleteTakes {
				break
			}
			if c.Index == h.Call || !history.Housekeeping(c.Group, c.Resource) && !p.skip(SameInstant, !decides(c)) {
				all = append(all, overtakingDelete{h.Call, c.Index, step})
			}
		}
	}
	return all
}

// decides tells whether it matters to anybody that an object goes after a call rather than before:
// the call changed something, or was a look at what the API server has.
func decides(c history.Call) bool {
	return c.Changed || c.Side == history.Kubernetes && c.Pass != history.Nobody
}

func (o overtakingDelete) disturbance() disturbance {
	d := disturbance{kind: overtaken, at: o.removes}
	if o.read != o.removes {
		d.arg = strconv.Itoa(o.read)
	}
	return d
}

// overtaking returns the jobs that play deletes which were overtaken. Each may end as if the user
// had deleted at either end of it, in the ordinary way: these runs are played first.
func (e *explorer) overtaking(t *testing.T, all []overtakingDelete) ([]job, error) {
	ends := map[disturbance]*history.Run{}
	var refs, jobs []job
	for _, o := range all {
		for _, d := range o.references() {
			if _, ok := ends[d]; !ok {
				ends[d] = nil
				refs = append(refs, job{schedule: schedule{d}, last: o.step})
			}
		}
	}
	undisturbed := e.reference.run
	err := e.playAll(t, refs, func(j job, r result) {
		if r.err != nil || r.play.void || len(r.run.Steps) <= j.last {
			return
		}
		run := *undisturbed
		run.Steps = slices.Clone(run.Steps[:j.last+1])
		run.Steps[j.last].State = r.run.Steps[j.last].State
		ends[j.schedule[0]] = &run
	})
	for _, o := range all {
		j := job{schedule: schedule{o.disturbance()}, last: o.step}
		for _, d := range o.references() {
			if run := ends[d]; run != nil {
				j.alike = append(j.alike, run)
			}
		}
		if len(j.alike) > 0 { // else there is no end that would be right
			j.like = j.alike[0]
			jobs = append(jobs, j)
		}
	}
	return jobs, err
}

// references are ordinary deletes at the end and at the beginning of one that was overtaken.
func (o overtakingDelete) references() []disturbance {
	return []disturbance{
		{kind: deletedAfter, at: o.removes, arg: strconv.Itoa(o.read)},
		{kind: deletedBefore, at: o.read},
	}
}

// overtakenJob returns the job that plays one of them.
func (e *explorer) overtakenJob(t *testing.T, d disturbance, reference result) (job, error) {
	p := &plan{scenario: e.scenario, reference: reference, keep: []Rule{SameInstant}, pruned: map[Rule]int{}}
	all := slices.DeleteFunc(p.overtakings(), func(o overtakingDelete) bool { return o.disturbance() != d })
	jobs, err := e.overtaking(t, all)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("replay token: %s overtakes no delete: the operator puts no finalizer on an object at call %d, or call %d comes too late", d, d.readAt(), d.at)
	}
	if err != nil {
		return job{}, err
	}
	return jobs[0], nil
}

// wanted are the worlds that a step may end with.
func (j job) wanted(step int) []history.State {
	worlds := []history.State{j.like.Steps[step].State}
	for _, run := range j.alike {
		worlds = append(worlds, run.Steps[step].State)
	}
	return worlds
}

// closest is the run that a run is held against: of those that are right, one that ends the same.
func (j job) closest(r *history.Run) *history.Run {
	if j.like == nil {
		return r
	}
	if i := slices.IndexFunc(j.alike, func(run *history.Run) bool { return endsAs(r, run) }); i >= 0 {
		return j.alike[i]
	}
	return j.like
}

// endsRight tells whether a run ends as one of several that are right.
func (j job) endsRight(r *history.Run) bool {
	return slices.ContainsFunc(j.alike, func(run *history.Run) bool { return endsAs(r, run) })
}

func endsAs(r, run *history.Run) bool {
	last := len(r.Steps) - 1
	return last >= 0 && last < len(run.Steps) && sameState(run.Steps[last].State, r.Steps[last].State)
}

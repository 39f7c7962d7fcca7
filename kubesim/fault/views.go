package fault

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// things lists what exists outside now, in order.
func (p *play) resources() []history.Resource {
	if p.external == nil {
		return nil
	}
	listed := p.external.Resources()
	all := make([]history.Resource, len(listed))
	for i, r := range listed {
		all[i] = history.Resource(r)
	}
	slices.SortFunc(all, func(a, b history.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// observe notes what exists outside if it is not what it was, and reports whether.
func (p *play) observe(call int) bool {
	now := p.resources()
	if last := p.run.External; len(last) > 0 && slices.Equal(last[len(last)-1].Resources, now) {
		return false
	}
	p.run.External = append(p.run.External, history.View{At: time.Now(), Call: call, Step: p.step, Resources: now})
	return true
}

// externalFor returns the outside that a call sees: what is there, or for a read that lags,
// what was there before the last change.
func (p *play) externalFor(c *history.Call) ExternalAPI {
	if c.Write {
		p.keepEarlier()
		return p.external
	}
	if d, ok := p.schedule.find(c.Index, lag); ok && p.earlier != nil {
		p.noteFault(d, c.Index, c.What)
		return p.earlier
	}
	return p.external
}

// keepEarlier keeps what is outside before a write, for reads that lag behind it.
func (p *play) keepEarlier() {
	if p.scenario.Lag == 0 {
		return
	}
	if o, ok := p.external.(Cloner); ok {
		p.earlier = o.Clone()
	}
}

// point is where a schedule can begin: before or after a call.
type point struct {
	call  int
	after bool
}

// snapshot is all that outlives a crash, at one point of the undisturbed run.
type snapshot struct {
	db       *store.Snapshot
	external ExternalAPI
	things   []history.Resource // that the outside showed
	at       time.Time
	step     int
	waits    time.Time // until then the step itself lets time pass
	calls    int
	passes   int
	views    int
	steps    int
	marks    int
}

// snapshot keeps what is durable at a write, if schedules are to begin here.
func (p *play) snapshot(c *history.Call, after bool) {
	if p.snapshots == nil {
		return
	}
	s := &snapshot{
		db: p.db.Snapshot(), at: time.Now(), step: p.step, waits: p.waitsUntil, calls: c.Index,
		passes: len(p.run.Passes), views: len(p.run.External), steps: len(p.run.Steps), marks: len(p.marks),
	}
	if p.external != nil {
		o, ok := p.external.(Cloner)
		if !ok {
			return
		}
		s.external, s.things = o.Clone(), p.resources()
		if _, ok := s.external.(Cloner); !ok {
			p.broken = misuse(fmt.Sprintf("the Clone of a %T is a %T, which has no method Clone itself; return what it was made of", p.external, s.external))
		}
	}
	p.snapshots[point{c.Index, after}] = s
}

package fault

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// things lists what exists outside now, in order.
func (p *play) things() []Thing {
	if p.outside == nil {
		return nil
	}
	all := p.outside.Things()
	slices.SortFunc(all, func(a, b Thing) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// lookOutside notes what exists outside if it is not what it was, and reports whether.
func (p *play) lookOutside(call int) bool {
	now := p.things()
	if last := p.run.Outside; len(last) > 0 && slices.Equal(last[len(last)-1].Things, now) {
		return false
	}
	p.run.Outside = append(p.run.Outside, history.View{At: time.Now(), Call: call, Step: p.step, Things: now})
	return true
}

// outsideFor returns the outside that a call sees: what is there, or for a read that lags,
// what was there before the last change.
func (p *play) outsideFor(c *history.Call) Outside {
	if c.Write {
		p.keepEarlier()
		return p.outside
	}
	if d, ok := p.schedule.find(c.Index, lag); ok && p.earlier != nil {
		p.noteFault(d, c.Index, c.What)
		return p.earlier
	}
	return p.outside
}

// keepEarlier keeps what is outside before a write, for reads that lag behind it.
func (p *play) keepEarlier() {
	if p.scenario.Lag == 0 {
		return
	}
	if o, ok := p.outside.(Cloner); ok {
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
	db      *store.Snapshot
	outside Outside
	things  []Thing // that the outside showed
	at      time.Time
	step    int
	waits   time.Time // until then the step itself lets time pass
	calls   int
	passes  int
	views   int
	steps   int
	marks   int
}

// snapshot keeps what is durable at a write, if schedules are to begin here.
func (p *play) snapshot(c *history.Call, after bool) {
	if p.snapshots == nil {
		return
	}
	s := &snapshot{
		db: p.db.Snapshot(), at: time.Now(), step: p.step, waits: p.waitsUntil, calls: c.Index,
		passes: len(p.run.Passes), views: len(p.run.Outside), steps: len(p.run.Steps), marks: len(p.marks),
	}
	if p.outside != nil {
		o, ok := p.outside.(Cloner)
		if !ok {
			return
		}
		s.outside, s.things = o.Clone(), p.things()
		if _, ok := s.outside.(Cloner); !ok {
			p.broken = misuse(fmt.Sprintf("the Clone of a %T is a %T, which has no method Clone itself; return what it was made of", p.outside, s.outside))
		}
	}
	p.snapshots[point{c.Index, after}] = s
}

package run

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// ThawedTime is how long a process that goes on may do so before it notices that it does not lead any more: the time in
// which client-go's leader election gives up.
const ThawedTime = 10 * time.Second

// frost stops a process at a call, as a node without a processor or a network does. It goes on when the next process works,
// notices nothing, and ends with the pass in which it made the call.
type frost struct {
	over chan struct{} // closed when it goes on

	mu sync.Mutex
	cold
}

// cold is what a frost does to a process.
type cold struct {
	frozen  bool
	thawed  bool      // it goes on beside the next one
	before  int       // the number of the call before which it goes on
	until   time.Time // by when it goes on in any case; then, by when it ends
	pass    int       // in which it was stopped
	views   int       // of the external API by then
	replace bool      // the next one has to be started
	heir    bool      // it was
}

// now is how it is with the process now.
func (f *frost) now() cold {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cold
}

// freeze stops a process at a call that has its turn, as the schedule has it, until it goes on. It fails if the caller
// does not wait for so long.
func (c *calls) freeze(ctx context.Context, p *Process, call *history.Call) error {
	d, ok := c.schedule.Find(len(c.record.Run.Calls), schedule.Frozen)
	if !ok || inWebhook(ctx) || call.Pass == history.Nobody || !c.froze.CompareAndSwap(false, true) {
		return nil
	}
	p.frost.begin(d, call.Pass, len(c.record.Run.External))
	c.record.Disturbed(d.Kind, history.Nobody, call.What)
	p.queue.Notify()
	select {
	case <-p.frost.over:
	case <-p.ended:
	}
	c.box.LastChange = time.Now() // what was stopped begins now
	if p.Alive() && ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), ctx.Err())
	}
	if err := p.awaitCall(ctx, call.Pass, call.What, ""); err != nil {
		return err
	}
	c.record.Disturbed(schedule.Thawed, len(c.record.Run.Calls), call.What)
	return nil
}

// excuse lets a run say nothing if a process that went on has removed what the next one created under the same name.
func (c *calls) excuse(p *Process, call *history.Call) {
	if call.Side != history.External || !call.Changed {
		return
	}
	if f := p.frost.now(); f.thawed && removesSuccessor(c.record.Run.External, f.views) {
		c.others.Void = true
	}
}

// begin notes that the process stands still.
func (f *frost) begin(d schedule.Disturbance, pass, views int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen, f.pass, f.views = true, pass, views
	later, _ := strconv.Atoi(d.Arg)
	f.replace, f.before, f.until = true, d.At+max(1, later), time.Now().Add(FlightTime)
}

// thaw lets the process go on before a call of that number, or if it is time.
func (f *frost) thaw(call int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.frozen || call < f.before && time.Now().Before(f.until) {
		return false
	}
	f.frozen, f.thawed, f.until = false, true, time.Now().Add(ThawedTime)
	close(f.over)
	return true
}

// succeed reports whether the next process has to be started now.
func (f *frost) succeed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := f.replace
	f.replace, f.heir = false, f.heir || due
	return due
}

// Holds reports whether the process stands still, or goes on but begins no pass any more.
func (p *Process) Holds(t *turn.Turn) bool {
	f := p.frost.now()
	return p.Alive() && (f.frozen || f.thawed && t.For == turn.Pass)
}

// awaitThaw waits while the process stands still. In one that goes on beside the next one, it waits until that is
// dead: leader election does not end it before.
func (p *Process) awaitThaw() {
	if f := p.frost.now(); f.frozen || f.thawed {
		<-p.ended
	}
}

// endFrozen ends a process that was stopped in a pass when that pass ends.
func (p *Process) endFrozen(pass int) {
	if f := p.frost.now(); f.thawed && f.pass == pass && p.Alive() {
		p.crash()
	}
}

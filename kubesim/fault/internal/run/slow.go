package run

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// slowness is the call of a run that takes long. Meanwhile everything else goes on. A lock that the caller holds is
// held for as long.
type slowness struct {
	mu    sync.Mutex
	began bool
	until time.Time
}

// last is until when a call takes long; zero or in the past if none does.
func (s *slowness) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until
}

// begin notes that a call takes long. A run has one that does: if that ends before it has an effect, the next call has
// its number.
func (s *slowness) begin(until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began {
		return false
	}
	s.began, s.until = true, until
	return true
}

// end notes that it is over.
func (s *slowness) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
}

// holdUp lets a call that has its turn wait, as the schedule has it.
func (c *calls) holdUp(ctx context.Context, p *Process, call *history.Call) error {
	if err := c.freeze(ctx, p, call); err != nil {
		return err
	}
	return c.delay(ctx, p, call)
}

// delay lets a call that has its turn take long before it has its effect, as the schedule has it. It fails if the
// caller does not wait for so long; then there is no effect.
func (c *calls) delay(ctx context.Context, p *Process, call *history.Call) error {
	d, ok := c.schedule.Find(len(c.record.Run.Calls), schedule.SlowRequest)
	if !ok || inWebhook(ctx) {
		return nil
	}
	err := c.takeTime(ctx, p, call, d, history.Nobody)
	if err == nil || !p.Alive() {
		return err
	}
	call.Process, call.Fault = p.number, d.Kind
	c.record.BeginCall(call)
	return c.finish(call, err, nil)
}

// delayAnswer lets the answer to a call take long, as the schedule has it. It fails if the caller does not wait for so
// long.
func (c *calls) delayAnswer(ctx context.Context, p *Process, call *history.Call) error {
	d, ok := c.schedule.Find(call.Index, schedule.SlowAnswer)
	if !ok {
		return nil
	}
	return c.takeTime(ctx, p, call, d, call.Index)
}

// takeTime waits for as long as a disturbance says, and then for the next turn.
func (c *calls) takeTime(ctx context.Context, p *Process, call *history.Call, d schedule.Disturbance, at int) error {
	span, err := time.ParseDuration(d.Arg)
	if err != nil {
		c.others.Broken = fmt.Errorf("%s says not how long the call takes: %w", d, err)
		return nil
	}
	if !c.slowness.begin(time.Now().Add(span)) {
		return nil
	}
	defer func() {
		c.slowness.end()
		c.box.LastChange = time.Now() // what waited for it begins now
	}()
	c.record.Disturbed(d.Kind, at, call.What+", which takes "+d.Arg)
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ended:
	case <-ctx.Done():
		if p.Alive() {
			return cmp.Or(context.Cause(ctx), ctx.Err())
		}
	}
	return p.awaitCall(ctx, call.Pass, call.What, "")
}

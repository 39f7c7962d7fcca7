package fault

import (
	"cmp"
	"context"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// The scheduler lets one thing happen at a time. Whoever in the operator wants to do
// something that others can see parks until it is its turn; between two turns all goroutines
// run until each waits for something.

// parkedAs is what a goroutine waits to do, in the order in which the undisturbed run
// prefers them; events are delivered after calls and before reads.
type parkedAs int

const (
	parkedCall parkedAs = iota // to Kubernetes or outside
	parkedRead                 // from the cache
	parkedPass                 // to begin
)

type parked struct {
	process *process
	as      parkedAs
	what    string
	number  int    // in order of arrival
	cache   bool   // a call that is made in no pass, such as a cache's
	slots   *slots // of the controller whose pass it is; nil for all else
	turn    chan struct{}
}

// slots are a controller's workers. There are more of them than the author asked for, so that
// all that is due waits here and not in the controller's queue, whose order is not the same
// in equal runs: two watches of one kind are told of an event by two goroutines. No more passes
// than the author asked for run at a time.
type slots struct{ limit, running int }

// workers is how many objects of one controller can be due at a time in a known order.
const workers = 16

// park waits for the goroutine's turn. It returns an error if the process died or ctx ended.
func (p *play) park(ctx context.Context, pr *process, as parkedAs, what string) error {
	return p.wait(ctx, &parked{
		process: pr, as: as, what: what, turn: make(chan struct{}), cache: as == parkedCall && passOf(ctx) == history.Nobody,
	})
}

func (p *play) wait(ctx context.Context, k *parked) error {
	pr := k.process
	if !pr.alive() {
		return pr.refuse(k.what)
	}
	p.mu.Lock()
	p.arrivals++
	k.number = p.arrivals
	p.waiting = append(p.waiting, k)
	p.mu.Unlock()
	p.notify()
	select {
	case <-k.turn:
	case <-ctx.Done():
		p.mu.Lock()
		p.waiting = slices.DeleteFunc(p.waiting, func(o *parked) bool { return o == k })
		p.mu.Unlock()
		if pr.alive() {
			return context.Cause(ctx)
		}
	}
	if !pr.alive() {
		return pr.refuse(k.what)
	}
	return nil
}

// notify wakes the scheduler.
func (p *play) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next returns who is first among those who wait, nil if nobody does.
func (p *play) next() *parked {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := slices.DeleteFunc(slices.Clone(p.waiting), func(k *parked) bool {
		return k.slots != nil && k.slots.running >= k.slots.limit
	})
	if len(ready) == 0 {
		return nil
	}
	return slices.MinFunc(ready, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.as, b.as), cmp.Compare(a.process.number, b.process.number),
			cmp.Compare(a.what, b.what), cmp.Compare(a.number, b.number))
	})
}

// release gives k its turn.
func (p *play) release(k *parked) {
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(o *parked) bool { return o == k })
	p.caching = k.cache
	p.mu.Unlock()
	close(k.turn)
}

// releaseDead lets what waits in dead processes go on and fail.
func (p *play) releaseDead() bool {
	p.mu.Lock()
	dead := slices.DeleteFunc(slices.Clone(p.waiting), func(k *parked) bool { return k.process.alive() })
	p.mu.Unlock()
	for _, k := range dead {
		p.release(k)
	}
	return len(dead) > 0
}

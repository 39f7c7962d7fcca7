package run

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// ErrRestless ends a run in which things go on happening without the clock moving on much.
var ErrRestless = errors.New("the cluster does not come to rest")

// unmetError is that of an expectation.
type unmetError struct{ error }

// IsUnmet reports whether a run ended because a step's expectation was not met at rest.
func IsUnmet(err error) bool { return errors.As(err, new(unmetError)) }

// loop lets one thing happen after another.
type loop struct {
	quiet  time.Duration
	box    *sandbox.Sandbox
	others *disturb.Others
	queue  *turn.Queue
	events *events
	fleet  *fleet
	doors  *doors
	calls  *calls
	// count is how much has happened.
	count *atomic.Int64
}

// actsPerStep bounds what may happen until the cluster is quiet: far more than any operator
// needs that comes to rest.
const actsPerStep = 5000

// othersTake is how much time what another controller does takes while a cache is behind.
const othersTake = 100 * time.Millisecond

// settle lets things happen until nothing has changed for a while.
func (l *loop) settle() error {
	return l.until(func() time.Duration { return time.Until(l.box.LastChange.Add(l.quiet)) })
}

// pass lets things happen for a span of the simulated clock.
func (l *loop) pass(d time.Duration) error {
	end := time.Now().Add(d)
	return l.until(func() time.Duration { return time.Until(end) })
}

// until lets things happen while left returns more than zero: that much time may go by if
// nothing happens.
func (l *loop) until(left func() time.Duration) error {
	for acts := 0; ; {
		l.count.Add(1)
		synctest.Wait()
		l.queue.Act()
		gone, err := l.fleet.replace()
		if gone {
			l.box.LastChange = time.Now()
		}
		if err != nil {
			return err
		}
		if err := l.attend(l.others.Finish); err != nil {
			return err
		}
		did, err := l.act()
		switch {
		case err != nil:
			return err
		case did:
			if acts++; acts > actsPerStep {
				return ErrRestless
			}
			continue
		}
		rest := left()
		if later := l.fleet.later; len(later) > 0 {
			rest = time.Until(later[0])
		} else if until := l.unrestUntil(); time.Now().Before(until) {
			rest = time.Until(until)
		} else if rest <= 0 && !l.fleet.hasCrashed() {
			return nil
		}
		l.queue.Sleep(rest)
	}
}

// unrestUntil is until when the cluster is not at rest because something is still to come; zero or in the past if it
// may be.
func (l *loop) unrestUntil() time.Time {
	for _, until := range []time.Time{l.events.interruptedUntil(), l.calls.flights.last(), l.fleet.frozenUntil(), l.others.HeldUntil} {
		if time.Now().Before(until) {
			return until
		}
	}
	return l.calls.slowness.last()
}

// act does the one thing that is first, and reports whether there was one.
func (l *loop) act() (did bool, err error) {
	if l.actInside() {
		return true, nil
	}
	err = l.attend(func() (failed error) {
		if did = l.calls.landOverdue(); !did {
			did, failed = l.box.Act()
		}
		return failed
	})
	if did && time.Now().Before(l.events.interruptedUntil()) {
		// Else the operator and a garbage collector that undoes what it does by an old cache would go on
		// for ever at one instant.
		time.Sleep(othersTake) //nolint:forbidigo // of the simulated clock
	}
	return did, err
}

// actInside is act for what the operator's processes and their caches do.
func (l *loop) actInside() bool {
	if l.fleet.releaseDead() || l.fleet.thaw(len(l.calls.record.Run.Calls)) || l.events.again() {
		return true
	}
	t := l.queue.Next()
	if t != nil && t.For == turn.Call {
		l.release(t)
		return true
	}
	held := l.fleet.held()
	if l.events.catchUp() {
		l.box.LastChange = time.Now() // what was held back has its effects now
		return true
	}
	held = l.events.timely(held)
	if t != nil && len(held) > 0 {
		l.events.couldWait = true
	}
	if len(held) > 0 && !l.events.wait(t) {
		if !l.events.interrupt(held[0]) {
			l.events.deliver(held[0])
		}
		return true
	}
	if t != nil {
		l.events.look(t)
		l.release(t)
		return true
	}
	return false
}

// attend does something that is not the operator's. While one of the operator's webhooks is called for it and
// waits, such as for a cache, things happen.
func (l *loop) attend(do func() error) error {
	if len(l.doors.now().registered) == 0 {
		return do()
	}
	defer l.doors.attended.Store(false)
	done := make(chan error, 1)
	go func() {
		err := errors.New("the goroutine ended; return errors instead of ending the test")
		defer func() { done <- err }()
		err = do()
	}()
	for {
		synctest.Wait()
		l.queue.Act()
		select {
		case err := <-done:
			return err
		default:
		}
		if l.doors.now().under == 0 {
			return <-done // it lets time pass
		}
		l.doors.attended.Store(true)
		if !l.actInside() {
			l.queue.Sleep(time.Second)
		}
	}
}

// insist does something that users do, and does it again for a while if no process of the operator serves the
// webhooks that it needs.
func (l *loop) insist(do func() error) error {
	const pause, most = 10 * time.Second, 30
	for n := 0; ; n++ {
		before := l.doors.now().outages
		err := l.attend(do)
		after := l.doors.now().outages
		switch {
		case err == nil || after == before:
			return err
		case n == most:
			return fmt.Errorf("no process of the operator has served its webhooks for %v: %w", most*pause, err)
		}
		if err := l.pass(pause); err != nil {
			return err
		}
	}
}

func (l *loop) release(t *turn.Turn) {
	l.events.caching.Store(t.Cache)
	l.queue.Release(t)
}

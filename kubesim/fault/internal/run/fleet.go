package run

import (
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// fleet is the operator's processes that run.
type fleet struct {
	scenario *Scenario
	queue    *turn.Queue
	events   *events
	make     func() *Process

	running  []*Process
	restarts int
	later    []time.Time // when to start a process in place of one that died
}

const (
	restartDelay = time.Minute
	maxRestarts  = 20
)

// start starts the next process.
func (f *fleet) start() error {
	p := f.make()
	if err := p.start(f.scenario); err != nil {
		return err
	}
	f.running = append(f.running, p)
	return nil
}

// hasCrashed reports whether a process was killed and is not replaced yet.
func (f *fleet) hasCrashed() bool {
	return slices.ContainsFunc(f.running, func(p *Process) bool { return p.crashed.Load() })
}

// replace starts the operator again when it was killed or has ended by itself, and reports whether one
// has gone.
func (f *fleet) replace() (gone bool, err error) {
	for _, p := range slices.Clone(f.running) {
		began, err := f.succeed(p)
		if err != nil {
			return gone, err
		}
		gone = gone || began
		if !p.hasEnded() && !p.crashed.Load() {
			continue
		}
		if err := f.reap(p); err != nil {
			return gone, err
		}
		gone = true
		if p.frost.now().heir && f.scenario.Replicas <= 1 {
			continue
		}
		f.restarts++
		if f.restarts > maxRestarts {
			return gone, fmt.Errorf("the operator ended by itself %d times, the last time with: %w", f.restarts, p.err)
		}
		if f.scenario.Replicas > 1 {
			f.later = append(f.later, time.Now().Add(restartDelay))
			continue
		}
		if err := f.start(); err != nil {
			return gone, err
		}
	}
	return gone, f.startLater()
}

// succeed starts the process that follows one that stands still, and reports whether it did. It ends one that
// goes on for too long.
func (f *fleet) succeed(p *Process) (began bool, err error) {
	if at := p.frost.now(); at.thawed && !time.Now().Before(at.until) {
		p.crash()
	}
	if !p.frost.succeed() || f.scenario.Replicas > 1 {
		return false, nil
	}
	return true, f.start()
}

// thaw lets processes that stand still go on before a call of that number, and reports whether one does.
func (f *fleet) thaw(call int) bool {
	return slices.ContainsFunc(f.running, func(p *Process) bool { return p.frost.thaw(call) })
}

// frozenUntil is until when something is to come from a process that stands still, or did; zero or in the past if
// nothing is.
func (f *fleet) frozenUntil() (until time.Time) {
	for _, p := range f.running {
		if at := p.frost.now().until; at.After(until) {
			until = at
		}
	}
	return until
}

// startLater starts what replaces dead processes among several, once the others have had the
// time to take over: who is first is a matter of chance otherwise.
func (f *fleet) startLater() error {
	for len(f.later) > 0 && !time.Now().Before(f.later[0]) {
		f.later = f.later[1:]
		if err := f.start(); err != nil {
			return err
		}
	}
	return nil
}

// reap waits until a process is gone, with all that it still tries in vain.
func (f *fleet) reap(p *Process) error {
	p.kill()
	end := time.Now().Add(time.Minute)
	for {
		synctest.Wait()
		if f.releaseDead() {
			continue
		}
		if p.hasEnded() {
			f.running = slices.DeleteFunc(f.running, func(o *Process) bool { return o == p })
			f.events.forget()
			return nil
		}
		if time.Now().After(end) {
			return errors.New("the operator's manager does not return although its context ended a minute ago")
		}
		f.queue.Sleep(time.Second)
	}
}

// releaseDead lets what waits in dead processes go on and fail.
func (f *fleet) releaseDead() bool {
	dead := f.queue.Dead()
	for _, t := range dead {
		f.events.caching.Store(t.Cache)
		f.queue.Release(t)
	}
	return len(dead) > 0
}

// stop ends all processes in an orderly way.
func (f *fleet) stop() error {
	for _, p := range slices.Clone(f.running) {
		if err := f.reap(p); err != nil {
			return err
		}
	}
	synctest.Wait()
	return nil
}

// held lists the events that wait, in the order in which the undisturbed run delivers them.
func (f *fleet) held() []delivery {
	var all []delivery
	for _, p := range f.running {
		if p.frost.now().frozen {
			continue
		}
		for _, h := range p.gate.Held() {
			all = append(all, delivery{&p.gate, h})
		}
	}
	return all
}

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
func (f *fleet) hasCrashed() bool { return slices.ContainsFunc(f.running, (*Process).hasCrashed) }

// replace starts the operator again when it was killed or has ended by itself, and reports whether one
// has gone.
func (f *fleet) replace() (gone bool, err error) {
	for _, p := range slices.Clone(f.running) {
		if !p.hasEnded() && !p.hasCrashed() {
			continue
		}
		if err := f.reap(p); err != nil {
			return gone, err
		}
		gone = true
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
		f.events.setCaching(t.Cache)
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
		for _, h := range p.gate.Held() {
			all = append(all, delivery{&p.gate, h})
		}
	}
	return all
}

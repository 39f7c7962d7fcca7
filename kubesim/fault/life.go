package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// errRestless ends a run in which things go on happening without the clock moving on much.
var errRestless = errors.New("the world never comes to rest")

// crash ends the life of a process in the middle of a call.
func (p *play) crash(pr *process) {
	p.run.Processes[pr.number].Crashed = true
	p.crashed = pr
	pr.kill()
	p.notify()
}

// replaceCrashed starts the operator again when it was killed or has ended by itself.
func (p *play) replaceCrashed() error {
	for _, pr := range slices.Clone(p.processes) {
		select {
		case <-pr.done:
		default:
			if pr != p.crashed {
				continue
			}
		}
		if err := p.reap(pr); err != nil {
			return err
		}
		p.restarts++
		if p.restarts > maxRestarts {
			return fmt.Errorf("the operator ended by itself %d times, the last time with: %w", p.restarts, pr.err)
		}
		p.lastChange = time.Now()
		if p.scenario.Replicas > 1 {
			p.later = append(p.later, time.Now().Add(restartDelay))
			continue
		}
		if err := p.start(); err != nil {
			return err
		}
	}
	return p.startLater()
}

// startLater starts what replaces dead processes among several, once the others have had the
// time to take over: who is first is a matter of chance otherwise.
func (p *play) startLater() error {
	for len(p.later) > 0 && !time.Now().Before(p.later[0]) {
		p.later = p.later[1:]
		if err := p.start(); err != nil {
			return err
		}
	}
	return nil
}

const restartDelay = time.Minute

const maxRestarts = 20

// reap waits until a process is gone, with all that it still tries in vain.
func (p *play) reap(pr *process) error {
	pr.kill()
	end := time.Now().Add(time.Minute)
	for {
		synctest.Wait()
		if p.releaseDead() {
			continue
		}
		select {
		case <-pr.done:
			p.processes = slices.DeleteFunc(p.processes, func(o *process) bool { return o == pr })
			if p.crashed == pr {
				p.crashed = nil
			}
			p.current, p.hold = history.Nobody, history.Nobody
			return nil
		default:
		}
		if time.Now().After(end) {
			return errors.New("the operator's manager does not return although its context ended a minute ago")
		}
		p.sleep(time.Second)
	}
}

// stopAll ends all processes in an orderly way.
func (p *play) stopAll() error {
	for _, pr := range slices.Clone(p.processes) {
		if err := p.reap(pr); err != nil {
			return err
		}
	}
	synctest.Wait()
	return nil
}

func (p *play) beginPass(pr *process, controller, object string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := len(p.run.Passes)
	p.current = index
	_, stale := p.schedule.find(index, stalePass)
	p.run.Passes = append(p.run.Passes, history.Pass{
		Index: index, Process: pr.number, Controller: controller, Object: object,
		Begin: time.Now(), First: len(p.run.Calls), Stale: stale,
	})
	return index
}

func (p *play) endPass(index int, result reconcile.Result, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if index >= len(p.run.Passes) {
		return
	}
	h := &p.run.Passes[index]
	h.End, h.Last, h.Ended, h.Requeue = time.Now(), len(p.run.Calls), true, result.RequeueAfter
	if err != nil {
		h.Err = err.Error()
	}
	if p.current == index {
		p.current = history.Nobody
	}
	if p.hold == index {
		p.hold = history.Nobody
	}
}

func (p *play) notePanic(pr *process, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &p.run.Processes[pr.number]
	h.Panics = append(h.Panics, what)
}

// noteUnseen notes a controller whose reconciles cannot be wrapped.
func (p *play) noteUnseen(controller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.unseen, controller) {
		p.unseen = append(p.unseen, controller)
	}
}

func (p *play) noteFault(d disturbance, call int, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.Faults = append(p.run.Faults, history.Fault{Kind: d.kind, Call: call, At: at, Time: time.Now(), Step: p.step})
}

// do lets somebody besides the operator act, and notes what came of it.
func (p *play) do(by string, act func(ctx context.Context, w *World) error) error {
	before := p.db.Revision()
	err := act(context.Background(), p.world())
	p.mark(before, p.db.Revision(), by, history.Nobody)
	p.observe(history.Nobody)
	p.lastChange = time.Now()
	return err
}

func (p *play) world() *World { return &World{Client: p.admin, ExternalAPI: p.external} }

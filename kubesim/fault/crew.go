package fault

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// crew is workers who play jobs from one list.
type crew struct {
	explorer *explorer
	jobs     []job
	done     func(job, result)

	mu      sync.Mutex
	next    int
	failure error // ends the work
}

// playAll plays jobs on all workers and hands each result on, one at a time.
func (e *explorer) playAll(t *testing.T, jobs []job, done func(job, result)) error {
	workers := e.options.workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for i := range jobs {
		jobs[i].number = i
	}
	c := &crew{explorer: e, jobs: jobs, done: done}
	var group sync.WaitGroup
	for range min(workers, len(jobs)) {
		group.Go(func() { c.work(t) })
	}
	group.Wait()
	return c.failure
}

// work plays one job after another.
func (c *crew) work(t *testing.T) {
	w, err := c.explorer.newWorker()
	for {
		j, ok := c.take(err)
		if !ok {
			return
		}
		r := w.play(t, j)
		c.hand(j, r)
		if r.lost {
			w, err = c.explorer.newWorker()
		}
	}
}

// take returns the next job; false means that the work is over.
func (c *crew) take(err error) (job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	if c.failure != nil || c.next == len(c.jobs) {
		return job{}, false
	}
	c.next++
	return c.jobs[c.next-1], true
}

// hand hands a result on.
func (c *crew) hand(j job, r result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := errors.AsType[misuse](r.err); ok || r.run == nil { // stuck: there is nothing to judge
		c.failure = fmt.Errorf("schedule %s: %w", j.schedule.token(c.explorer.scenario.Name), r.err)
		return
	}
	c.done(j, r)
}

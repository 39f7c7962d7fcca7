package run

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// crew is workers who play jobs from one list.
type crew struct {
	simulation *Simulation
	jobs       []Job
	over       func() bool // no more jobs begin
	done       func(Job, Result)

	mu      sync.Mutex
	next    int
	failure error // ends the work
}

// work plays one job after another.
func (c *crew) work(t *testing.T) {
	w, err := c.simulation.Hire()
	for {
		j, ok := c.take(err)
		if !ok {
			if err == nil {
				c.simulation.Dismiss(w)
			}
			return
		}
		r := w.Play(t, j)
		c.hand(j, r)
		if r.Lost {
			w, err = c.simulation.Hire()
		}
	}
}

// take returns the next job; false means that the work is over.
func (c *crew) take(err error) (Job, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	if c.failure != nil || c.next == len(c.jobs) || c.over() {
		return Job{}, false
	}
	c.next++
	return c.jobs[c.next-1], true
}

// hand hands a result on.
func (c *crew) hand(j Job, r Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := errors.AsType[sandbox.MisuseError](r.Err); ok || r.Run == nil { // stuck: there is nothing to judge
		c.failure = fmt.Errorf("schedule %s: %w", j.Schedule.Token(c.simulation.scenario.Name), r.Err)
		return
	}
	c.done(j, r)
}

// Package turn lets one thing happen at a time. Whoever in an operator wants to do something that
// others can see waits until it is its turn; between two turns all goroutines run until each of them
// waits for something.
package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Order says what a goroutine waits to do. The undisturbed run prefers them in this order; events are
// delivered after calls and before reads.
type Order int

// What goroutines wait for.
const (
	Call Order = iota // to Kubernetes or to the external API
	Read              // from the cache
	Pass              // to begin
)

// Detail is the detail of a turn: the name of an object and a digest of all else that is asked for.
func Detail(name string, asked ...string) string {
	return fmt.Sprintf("%s %x", name, sha256.Sum256([]byte(strings.Join(asked, "\x00"))))
}

// Process is whose goroutine waits.
type Process interface {
	// Number is its place among the processes of the run.
	Number() int
	// Alive reports whether it may still do something.
	Alive() bool
	// Holds reports whether what waits may not be done for now.
	Holds(t *Turn) bool
	// GoOn notes what it wants to do although it may not, and fails then.
	GoOn(what string) error
}

// Turn is one goroutine that waits.
type Turn struct {
	Process Process
	For     Order
	What    string
	// Detail tells apart what one pass does at the same time, such as which objects it creates; see [Detail].
	Detail string
	// Cache is set for a call that is made in no pass, such as a cache's.
	Cache bool
	// Pass is the number of the pass that it is part of, below 0 for none.
	Pass int
	// Slots are those of the controller whose pass it is; nil for all else.
	Slots *Slots

	number int // in order of arrival
	come   chan struct{}
}

// Slots are a controller's workers. There are more of them than the author asked for, so that
// all that is due waits here and not in the controller's queue, whose order is not the same
// in equal runs: two watches of one kind are told of an event by two goroutines. No more passes
// than the author asked for run at a time.
type Slots struct{ Limit, Running int }

// Queue is all goroutines of a run that wait.
type Queue struct {
	wake chan struct{}

	mu       sync.Mutex
	acts     int
	waiting  []*Turn
	arrivals int
	chances  []string
}

// NewQueue returns a queue in which nobody waits.
func NewQueue() *Queue { return &Queue{wake: make(chan struct{}, 1)} }

// Moment is when something happens: after one act and before the next, at a time of the simulated clock.
type Moment struct {
	acts int
	at   time.Time
}

// Now is the present moment.
func (q *Queue) Now() Moment {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Moment{q.acts, time.Now()}
}

// Act notes that the next act follows.
func (q *Queue) Act() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acts++
}

// Wait waits for a turn. It fails if the process died or ctx ended.
func (q *Queue) Wait(ctx context.Context, t *Turn) error {
	if err := t.Process.GoOn(t.What); err != nil {
		return err
	}
	t.come = make(chan struct{})
	q.mu.Lock()
	q.arrivals++
	t.number = q.arrivals
	q.waiting = append(q.waiting, t)
	q.mu.Unlock()
	q.Notify()
	select {
	case <-t.come:
	case <-ctx.Done():
		q.remove(t)
		if t.Process.Alive() {
			return context.Cause(ctx)
		}
	}
	return t.Process.GoOn(t.What)
}

func (q *Queue) remove(t *Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(o *Turn) bool { return o == t })
}

// Next returns who is first among those who wait, nil if nobody may go on.
func (q *Queue) Next() *Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	ready := slices.DeleteFunc(slices.Clone(q.waiting), func(t *Turn) bool {
		return t.Slots != nil && t.Slots.Running >= t.Slots.Limit || t.Process.Holds(t)
	})
	if len(ready) == 0 {
		return nil
	}
	first := slices.MinFunc(ready, func(a, b *Turn) int { return cmp.Or(order(a, b), cmp.Compare(a.number, b.number)) })
	chance := slices.ContainsFunc(ready, func(t *Turn) bool { return t != first && order(first, t) == 0 })
	if chance && !slices.Contains(q.chances, first.What) {
		q.chances = append(q.chances, first.What)
	}
	return first
}

// order compares what is the same in equal runs.
func order(a, b *Turn) int {
	return cmp.Or(cmp.Compare(a.For, b.For), cmp.Compare(a.Process.Number(), b.Process.Number()),
		cmp.Compare(a.What, b.What), cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Detail, b.Detail))
}

// Chances are what several goroutines waited for at the same time that nothing tells apart, so that it
// was chance which one was first.
func (q *Queue) Chances() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.chances)
}

// Dead returns those who wait in processes that are dead.
func (q *Queue) Dead() []*Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(q.waiting), func(t *Turn) bool { return t.Process.Alive() })
}

// Release lets one go on.
func (q *Queue) Release(t *Turn) {
	q.remove(t)
	close(t.come)
}

// Notify ends a [Queue.Sleep].
func (q *Queue) Notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Sleep waits until somebody wants something, at most for d.
func (q *Queue) Sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-q.wake:
	case <-timer.C:
	}
}

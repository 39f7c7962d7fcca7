package looptest

import (
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the queue of a controller whose passes run when the test says so.
type queue struct {
	mu     sync.Mutex
	ready  map[reconcile.Request]time.Time
	order  []reconcile.Request
	delays interface {
		When(reconcile.Request) time.Duration
		NumRequeues(reconcile.Request) int
	}
}

func newQueue() *queue { return &queue{ready: map[reconcile.Request]time.Time{}} }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue) AddAfter(req reconcile.Request, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := time.Now().Add(d)
	if before, queued := q.ready[req]; !queued {
		q.order = append(q.order, req)
	} else if before.Before(at) {
		return
	}
	q.ready[req] = at
}

// Add implements workqueue.TypedInterface.
func (q *queue) Add(req reconcile.Request) { q.AddAfter(req, 0) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue) AddRateLimited(req reconcile.Request) { q.AddAfter(req, q.delays.When(req)) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *queue) NumRequeues(req reconcile.Request) int { return q.delays.NumRequeues(req) }

// Len implements workqueue.TypedInterface.
func (q *queue) Len() int { return len(q.ready) }

// The rest of the interface is for workers, of which there are none.

// Get implements workqueue.TypedInterface.
func (q *queue) Get() (req reconcile.Request, shutdown bool) { return req, true }

// Done implements workqueue.TypedInterface.
func (q *queue) Done(reconcile.Request) {}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *queue) Forget(reconcile.Request) {}

// ShutDown implements workqueue.TypedInterface.
func (q *queue) ShutDown() {}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *queue) ShutDownWithDrain() {}

// ShuttingDown implements workqueue.TypedInterface.
func (q *queue) ShuttingDown() bool { return false }

func (q *queue) due(req reconcile.Request) (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, queued := q.ready[req]
	return max(time.Until(at), 0), queued
}

// soonest returns the object whose pass is due first, and in how long.
func (q *queue) soonest() (found reconcile.Request, in time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, req := range q.order {
		if wait := max(time.Until(q.ready[req]), 0); !ok || wait < in {
			found, in, ok = req, wait, true
		}
	}
	return found, in, ok
}

func (q *queue) take(req reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.ready, req)
	q.order = slices.DeleteFunc(q.order, func(r reconcile.Request) bool { return r == req })
}

// ended puts an object back as controller-runtime does after a pass.
func (q *queue) ended(req reconcile.Request, result reconcile.Result, err error) {
	switch {
	case isTerminal(err):
	case err != nil:
		q.AddRateLimited(req)
	case result.RequeueAfter > 0:
		q.AddAfter(req, result.RequeueAfter)
	}
}

package run

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// newQueue makes the queue of a controller.
type newQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// onceAtATime returns a queue that gives the same requests in equal runs. If several handlers of a controller get one
// event, each adds its request in a goroutine of its own. Whether the last one comes before a worker has taken what the
// first one added, and so adds nothing, or after that, and so asks for one more pass, would be chance. Here a
// request that comes at the same moment as the one before adds nothing. ready waits until workers may begin.
//
// The queue has no name, and so no metrics, for which it would look at itself each half second of the simulated clock.
func onceAtATime(made newQueue, now func() turn.Moment, ready func()) newQueue {
	return func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		d := &due{limiter: limiter, now: now, ready: ready, of: map[reconcile.Request]*pending{}}
		switch q := made("", limiter).(type) {
		case priorityqueue.PriorityQueue[reconcile.Request]:
			return priorityOnce{q, d}
		default:
			return plainOnce{q, d}
		}
	}
}

// due are the requests that workers of a controller have taken and not finished.
type due struct {
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	now     func() turn.Moment
	ready   func()

	mu sync.Mutex
	of map[reconcile.Request]*pending
}

// pending is a request that a worker has taken.
type pending struct {
	since turn.Moment
	again bool // it was added since
}

// take reports whether a worker may take a request now. If another one has it, that one is followed by one more pass,
// unless it has only just taken it.
func (d *due) take(r reconcile.Request) bool {
	d.ready()
	d.mu.Lock()
	defer d.mu.Unlock()
	p, now := d.of[r], d.now()
	switch {
	case p == nil:
		d.of[r] = &pending{since: now}
		return true
	case p.since != now:
		p.again = true
	}
	return false
}

// isNext reports whether a request is added already as soon as the worker that has it is done.
func (d *due) isNext(r reconcile.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of[r] != nil && d.of[r].again
}

// done ends what take began, and reports whether one more pass follows.
func (d *due) done(r reconcile.Request) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	again = d.of[r] != nil && d.of[r].again
	delete(d.of, r)
	return again
}

// plainOnce is a queue without priorities.
type plainOnce struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	due *due
}

// Get waits for a request that no other worker has.
func (q plainOnce) Get() (reconcile.Request, bool) {
	for {
		r, shutdown := q.TypedRateLimitingInterface.Get()
		if shutdown {
			return r, true
		}
		q.TypedRateLimitingInterface.Done(r)
		if q.due.take(r) {
			return r, false
		}
	}
}

// Done ends a pass.
func (q plainOnce) Done(r reconcile.Request) {
	if q.due.done(r) {
		q.Add(r)
	}
}

// priorityOnce is a queue with priorities.
type priorityOnce struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	due *due
}

// Get waits for a request that no other worker has.
func (q priorityOnce) Get() (reconcile.Request, bool) {
	r, _, shutdown := q.GetWithPriority()
	return r, shutdown
}

// GetWithPriority is Get.
func (q priorityOnce) GetWithPriority() (reconcile.Request, int, bool) {
	for {
		r, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown {
			return r, priority, true
		}
		q.PriorityQueue.Done(r)
		if q.due.take(r) {
			return r, priority, false
		}
	}
}

// Done ends a pass.
func (q priorityOnce) Done(r reconcile.Request) {
	if q.due.done(r) {
		q.Add(r)
	}
}

// Add adds a request.
func (q priorityOnce) Add(r reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

// AddAfter adds a request later.
func (q priorityOnce) AddAfter(r reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, r)
}

// AddRateLimited adds a request after its back-off.
func (q priorityOnce) AddRateLimited(r reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, r)
}

// AddWithOpts adds requests. One that is added already comes at once, as in the queue itself.
func (q priorityOnce) AddWithOpts(o priorityqueue.AddOpts, all ...reconcile.Request) {
	for _, r := range all {
		if (o.After > 0 || o.RateLimited) && q.due.isNext(r) {
			if o.RateLimited {
				q.due.limiter.When(r)
			}
			continue
		}
		q.PriorityQueue.AddWithOpts(o, r)
	}
}

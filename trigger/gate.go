package trigger

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// gate lets a source wake objects until it is shut. When shut has returned, nobody is woken by the source any more.
type gate struct {
	mu   sync.RWMutex
	over bool
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

// pass calls f if the gate is open.
func (g *gate) pass(f func()) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.over {
		f()
	}
}

// event is the function Event of a [Target] behind the gate.
func (g *gate) event(event func(types.NamespacedName) bool) func(types.NamespacedName) bool {
	return func(key types.NamespacedName) (queue bool) {
		g.pass(func() { queue = event(key) })
		return queue
	}
}

// behind returns the queue behind the gate.
func (g *gate) behind(q queue) queue {
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return gatedPriority{p, g}
	}
	return gated{q, g}
}

type gated struct {
	queue
	gate *gate
}

// Add implements workqueue.TypedInterface.
func (g gated) Add(r reconcile.Request) { g.gate.pass(func() { g.queue.Add(r) }) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (g gated) AddAfter(r reconcile.Request, d time.Duration) {
	g.gate.pass(func() { g.queue.AddAfter(r, d) })
}

type gatedPriority struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	gate *gate
}

// Add implements workqueue.TypedInterface.
func (g gatedPriority) Add(r reconcile.Request) { g.gate.pass(func() { g.PriorityQueue.Add(r) }) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (g gatedPriority) AddAfter(r reconcile.Request, d time.Duration) {
	g.gate.pass(func() { g.PriorityQueue.AddAfter(r, d) })
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (g gatedPriority) AddWithOpts(o priorityqueue.AddOpts, r ...reconcile.Request) {
	g.gate.pass(func() { g.PriorityQueue.AddWithOpts(o, r...) })
}

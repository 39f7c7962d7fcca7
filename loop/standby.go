package loop

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// begin is run by the manager when this process becomes the leader, at once if there is no election. It
// queues the objects that came before.
func (c *Controller[T]) begin(ctx context.Context) error {
	c.memory.lead()
	waiting := c.memory.takeStandby()
	keys := slices.SortedFunc(maps.Keys(waiting), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if c.resumeCached(ctx, key, waiting[key]) {
			continue
		}
		c.event(key, causeCreated)
		req := reconcile.Request{NamespacedName: key}
		if q, ok := waiting[key].(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(lowPriority)}, req)
			continue
		}
		waiting[key].Add(req)
	}
	return nil
}

// lead notes that this process is the leader.
func (m *memory) lead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leading = true
}

// stand notes that an object is to be put into q once this process leads. It returns false if the
// process leads already.
func (m *memory) stand(key types.NamespacedName, q queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leading {
		return false
	}
	m.standby[key] = q
	return true
}

// fall forgets a deleted object in a process that does not lead. It returns false in one that leads,
// which may have to clean up. The others leave that to the leader, which saw the same: they cannot know
// later what the leader did and what was created since.
func (m *memory) fall(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leading {
		return false
	}
	delete(m.standby, key)
	delete(m.objects, key)
	return true
}

// leads reports whether this process is the leader.
func (m *memory) leads() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leading
}

// takeStandby returns the objects that came before this process led.
func (m *memory) takeStandby() map[types.NamespacedName]queue {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := m.standby
	m.standby = nil
	return waiting
}

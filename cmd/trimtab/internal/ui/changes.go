package ui

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// settling is how long more changes are waited for after one, so that many are shown at once.
	settling = 200 * time.Millisecond
	// discovering is how often new kinds are looked for, and ended watches begun again.
	discovering = 15 * time.Second
)

// changes tells whoever waits that some object has changed.
type changes struct {
	options Options

	mu      sync.Mutex
	waiting chan struct{} // closed with the next change
	pending bool
	watched map[schema.GroupVersionKind]bool
}

func newChanges(o Options) *changes {
	return &changes{options: o, waiting: make(chan struct{}), watched: map[schema.GroupVersionKind]bool{}}
}

// next returns a channel that is closed at the next change.
func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// tell wakes all that wait.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.waiting)
	c.waiting, c.pending = make(chan struct{}), false
}

// changed wakes all that wait, a moment later.
func (c *changes) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.pending {
		c.pending = true
		time.AfterFunc(settling, c.tell)
	}
}

// run watches the kinds of operators until ctx ends.
func (c *changes) run(ctx context.Context) {
	if c.options.Watch == nil {
		return
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	tick := time.NewTicker(discovering)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, kind := range c.options.Cluster().Kinds() {
			if c.begin(kind) {
				watches.Go(func() {
					defer c.end(kind)
					_ = c.options.Watch(ctx, kind, c.options.Namespace, c.changed) // the page says what cannot be read
				})
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// begin notes that a kind is watched, unless it is already.
func (c *changes) begin(kind schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[kind] {
		return false
	}
	c.watched[kind] = true
	return true
}

func (c *changes) end(kind schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, kind)
}

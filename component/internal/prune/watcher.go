package prune

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/trimtab-dev/trimtab/internal/apply"
)

// Watcher watches objects until one of them is gone. The zero value watches nothing before it is started.
type Watcher struct {
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the watches, which outlive the passes that ask for them
	running map[string]bool
}

// Start lets watches run until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// Await calls wake when one of the objects that were found is gone, or when the watch ends. Nothing
// happens if it is watched for the same waiter already, or if it cannot be watched.
func (w *Watcher) Await(c *apply.Client, found Found, waiter string, wake func()) {
	key := waiter + " " + found.path()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.running[key] {
		return
	}
	if w.running == nil {
		w.running = map[string]bool{}
	}
	w.running[key] = true
	go func() {
		watched := follow(w.ctx, c, found)
		w.mu.Lock()
		delete(w.running, key)
		w.mu.Unlock()
		if watched {
			wake()
		}
	}()
}

// follow watches until an object is gone. It reports whether it watched.
func follow(ctx context.Context, c *apply.Client, found Found) bool {
	events, err := c.Watch(ctx, found.path(), found.version)
	if err != nil {
		return false
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case e, open := <-events.ResultChan():
			if !open || e.Type == watch.Deleted || e.Type == watch.Error {
				return true
			}
		}
	}
}

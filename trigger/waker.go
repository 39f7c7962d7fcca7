package trigger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Waker wakes objects of the controllers that have it as an [External] source. Several controllers may
// share one. While no such controller runs, nothing is woken, because a controller that starts reconciles
// all its objects. The zero value is ready to use, and all methods are safe for concurrent use.
type Waker struct {
	// OnAttach is called with the context of each controller that starts and can then be woken. It may
	// be nil.
	OnAttach func(context.Context)

	mu      sync.Mutex
	next    int
	targets map[int]func(wake)
}

// wake says which objects are woken.
type wake struct {
	keys []types.NamespacedName
	// all: every object of the kind, spread over within.
	all    bool
	within time.Duration
	after  time.Duration
}

// All wakes every object of the controllers' kinds, spread evenly over the given time.
func (w *Waker) All(within time.Duration) { w.wake(wake{all: true, within: within}) }

// Objects wakes the objects with these keys now. Keys without an object are ignored.
func (w *Waker) Objects(keys ...types.NamespacedName) {
	if len(keys) > 0 {
		w.wake(wake{keys: keys})
	}
}

// Later wakes the object with this key after the given time. If it is called more than once, the
// earliest time counts.
func (w *Waker) Later(key types.NamespacedName, after time.Duration) {
	w.wake(wake{keys: []types.NamespacedName{key}, after: after})
}

func (w *Waker) wake(what wake) {
	w.mu.Lock()
	targets := slices.Collect(maps.Values(w.targets))
	w.mu.Unlock()
	for _, wake := range targets {
		wake(what)
	}
}

// attach has f, which returns at once, called for what is woken until ctx ends.
func (w *Waker) attach(ctx context.Context, f func(wake)) {
	w.mu.Lock()
	if w.targets == nil {
		w.targets = map[int]func(wake){}
	}
	n := w.next
	w.next++
	w.targets[n] = f
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.targets, n)
	})
	if w.OnAttach != nil {
		w.OnAttach(ctx)
	}
}

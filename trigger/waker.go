package trigger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outside wakes objects because of what happened outside the cluster.
type Outside[T client.Object] struct {
	// Waker is told what happened. Required.
	Waker *Waker
}

func (Outside[T]) source(T) {}

// Waker wakes objects of the controllers that have it among their sources; one may serve
// several. Between pods and while a controller does not run nobody is woken: a controller that
// starts looks at all of its objects anyway. The zero value is ready to use, and all methods
// are safe for concurrent use.
type Waker struct {
	// OnAttach is told the context in which a controller runs that can be woken from now on.
	// Nil tells nobody.
	OnAttach func(context.Context)

	mu    sync.Mutex
	next  int
	loops map[int]func(Wake)
}

// Wake is who is woken.
type Wake struct {
	// Objects are woken; nil means every object of the kind. Those that do not exist are
	// left out.
	Objects []types.NamespacedName
	// After is how long they sleep before. Zero means not at all.
	After time.Duration
	// Within is the time over which they are spread. Zero means at once.
	Within time.Duration
}

// All wakes every object, spread over a time so that they do not come together.
func (w *Waker) All(within time.Duration) { w.wake(Wake{Within: within}) }

// Objects wakes these at once.
func (w *Waker) Objects(keys ...types.NamespacedName) {
	if len(keys) > 0 {
		w.wake(Wake{Objects: keys})
	}
}

// Later wakes the object of that key after a while; of several times the first counts.
func (w *Waker) Later(key types.NamespacedName, after time.Duration) {
	w.wake(Wake{Objects: []types.NamespacedName{key}, After: after})
}

func (w *Waker) wake(who Wake) {
	w.mu.Lock()
	loops := slices.Collect(maps.Values(w.loops))
	w.mu.Unlock()
	for _, wake := range loops {
		wake(who)
	}
}

// Attach is for package loop: wake, which returns at once, is called until ctx ends.
func (w *Waker) Attach(ctx context.Context, wake func(Wake)) {
	w.mu.Lock()
	if w.loops == nil {
		w.loops = map[int]func(Wake){}
	}
	n := w.next
	w.next++
	w.loops[n] = wake
	w.mu.Unlock()
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.loops, n)
	})
	if w.OnAttach != nil {
		w.OnAttach(ctx)
	}
}

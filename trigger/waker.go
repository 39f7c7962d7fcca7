package trigger

import (
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
	mu    sync.Mutex
	next  int
	loops map[int]func(Wake)
}

// Wake is who is woken.
type Wake struct {
	// Objects are woken; nil means every object of the kind. Those that do not exist are
	// left out.
	Objects []types.NamespacedName
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

func (w *Waker) wake(who Wake) {
	w.mu.Lock()
	loops := slices.Collect(maps.Values(w.loops))
	w.mu.Unlock()
	for _, wake := range loops {
		wake(who)
	}
}

// Attach is for package loop: wake, which returns at once, is called until detach is.
func (w *Waker) Attach(wake func(Wake)) (detach func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loops == nil {
		w.loops = map[int]func(Wake){}
	}
	n := w.next
	w.next++
	w.loops[n] = wake
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.loops, n)
	}
}

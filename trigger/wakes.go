package trigger

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/runnable"
)

// wakes takes the keys of objects that a source wakes for something that is no event of Kubernetes. Until this
// process leads and its controller has a queue, it keeps them.
//
// Invariant: as long as there is no queue, nothing that was put is forgotten.
type wakes[T client.Object] struct {
	target Target[T]
	queues chan queue

	mu      sync.Mutex
	queue   queue // nil until the process leads
	waiting map[types.NamespacedName]struct{}
	every   bool // all objects are to be woken
}

func attachWakes[T client.Object](target Target[T]) (*wakes[T], error) {
	w := &wakes[T]{target: target, queues: make(chan queue, 1), waiting: map[types.NamespacedName]struct{}{}}
	err := target.Watch(source.Func(func(_ context.Context, q queue) error {
		w.queues <- q
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return w, target.Manager.Add(runnable.AtOnce(w.lead))
}

// lead queues what was kept, and from then on what comes.
func (w *wakes[T]) lead(ctx context.Context) error {
	var q queue
	select {
	case q = <-w.queues:
	case <-ctx.Done():
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
	for key := range w.waiting {
		q.Add(reconcile.Request{NamespacedName: key})
	}
	w.waiting = nil
	if w.every {
		w.addAll(ctx)
	}
	return nil
}

// put wakes the objects with these keys. Keys without an object are ignored in the end.
func (w *wakes[T]) put(keys ...types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if w.queue != nil {
			w.queue.Add(reconcile.Request{NamespacedName: key})
			continue
		}
		w.waiting[key] = struct{}{}
	}
}

// leads reports whether this process leads and its controller has a queue.
func (w *wakes[T]) leads() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue != nil
}

// all wakes every object.
func (w *wakes[T]) all(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.every = true
		return
	}
	w.addAll(ctx)
}

// addAll queues every object. The caller holds the lock.
func (w *wakes[T]) addAll(ctx context.Context) {
	for _, key := range w.target.all(ctx) {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// drop forgets the key of an object that is not known to exist, because there are too many. Instead, every object
// is woken.
func (w *wakes[T]) drop(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.waiting[key]; waits {
		delete(w.waiting, key)
		w.every = true
	}
}

// all returns the names of all objects, as the cache has them.
func (t Target[T]) all(ctx context.Context) []types.NamespacedName {
	found, err := t.objects().All(ctx)
	if err != nil && ctx.Err() == nil {
		t.Log.Error(err, "cannot list the objects to wake; their next passes will see what happened")
	}
	return cached.Keys(found)
}

package trigger

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/spread"
)

// External wakes objects because of events that do not come from Kubernetes. A wake-up does not
// count as an event of the object: a pending retry stays pending, so frequent wake-ups do not
// defeat its back-off.
type External[T client.Object] struct {
	// Waker says which objects to wake, and when. Required.
	Waker *Waker
}

func (External[T]) source(T) {}

// Check implements [Source].
func (e External[T]) Check() error {
	if e.Waker == nil {
		return errors.New("a trigger.External needs a Waker, for example new(trigger.Waker)")
	}
	return nil
}

// Watches implements [Source]: nothing in the cluster.
func (External[T]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (External[T]) Needs() []Need { return nil }

// Attach implements [Source].
func (e External[T]) Attach(target Target[T]) error {
	return target.Watch(source.Func(func(ctx context.Context, q queue) error {
		e.Waker.attach(ctx, func(w wake) {
			if w.all {
				go func() { w.keys = target.all(ctx); w.into(q) }() // the caller does not wait for the cache
				return
			}
			w.into(q)
		})
		return nil
	}))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// into puts the objects to wake into the queue.
func (w wake) into(q queue) {
	for _, key := range w.keys {
		after := w.after + time.Duration(spread.Share(key, 0)*float64(w.within))
		q.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}

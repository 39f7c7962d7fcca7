package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/trigger"
)

// wakers are those of the sources of that kind, whether they were given as values or by pointer.
func wakers[T client.Object](sources []trigger.Source[T]) []*trigger.Waker {
	var out []*trigger.Waker
	for _, s := range sources {
		switch o := s.(type) {
		case trigger.Outside[T]:
			out = append(out, o.Waker)
		case *trigger.Outside[T]:
			if o == nil {
				o = &trigger.Outside[T]{}
			}
			out = append(out, o.Waker)
		}
	}
	return out
}

// outside lets what happens outside the cluster wake objects. It counts as no event of theirs:
// a retry that is armed stays armed, so that whoever wakes too often spoils no back-off.
func (c *Controller[T]) outside(waker *trigger.Waker) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		waker.Attach(ctx, func(w trigger.Wake) {
			if w.Objects == nil {
				go c.wake(ctx, q, w) // the cache is asked who there is
				return
			}
			c.wake(ctx, q, w)
		})
		return nil
	})
}

// wake puts objects into the queue.
func (c *Controller[T]) wake(ctx context.Context, q queue, w trigger.Wake) {
	keys := w.Objects
	if keys == nil {
		var err error
		if keys, err = c.all(ctx); err != nil {
			if ctx.Err() == nil {
				c.log.Error(err, "cannot tell whom to wake; the next visits will notice what happened")
			}
			return
		}
	}
	for _, key := range keys {
		after := w.After + time.Duration(spread.Share(key, 0)*float64(w.Within))
		q.AddAfter(reconcile.Request{NamespacedName: key}, after)
	}
}

// all are the keys of the kind's objects, as the cache has them.
func (c *Controller[T]) all(ctx context.Context) ([]types.NamespacedName, error) {
	list, err := c.newList()
	if err != nil {
		return nil, err
	}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return keysOf(list), nil
}

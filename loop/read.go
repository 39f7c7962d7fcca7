package loop

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// staleError is the error of a read from a cache that lags behind what the API server is known to have.
type staleError struct{ lag time.Duration }

func (e staleError) Error() string {
	return "the cache has lagged behind the API server for " + e.lag.String()
}

// read returns the object of a pass as the cache has it, or live if the cache lags for too long. found is false
// if there is no such object. No pass works on a copy that is known to be old: what it wrote would be
// refused, or would take back what is there.
func (c *Controller[T]) read(ctx context.Context, key types.NamespacedName) (obj T, found bool, err error) {
	obj, found, err = c.readCached(ctx, key)
	if err != nil || !found {
		return obj, found, err
	}
	stale, lag := c.memory.stale(obj, c.finalizer)
	if !stale && c.memory.doubtful(obj) {
		if err := c.compare(ctx, key, obj); err != nil {
			return obj, true, err
		}
		stale, lag = c.memory.stale(obj, c.finalizer)
	}
	if !stale {
		return obj, true, nil
	}
	if lag < staleLimit {
		staleSkips.WithLabelValues(c.name, c.gvk.Kind).Inc()
		return obj, true, staleError{lag}
	}
	obj, found, err = c.readLive(ctx, key)
	if err != nil || !found {
		return obj, found, staleError{lag}
	}
	return obj, true, nil
}

// compare notes what the API server has of obj, a copy that may be old.
func (c *Controller[T]) compare(ctx context.Context, key types.NamespacedName, obj T) error {
	now, found, err := c.readLive(ctx, key)
	switch {
	case err != nil:
		return err
	case !found || now.GetUID() != obj.GetUID():
		c.memory.sawNone(key, obj.GetUID())
	default:
		c.memory.saw(now, string(c.fieldOwner()))
	}
	return nil
}

// certain is [Run.Certain].
func (p *pass[T]) certain(ctx context.Context) error {
	if p.vanished != nil || p.c.memory.proven(p.base) {
		return nil
	}
	if err := p.c.compare(ctx, p.key, p.base); err != nil {
		return err
	}
	if stale, _ := p.c.memory.stale(p.base, p.c.finalizer); stale {
		return Outdated(errors.New("the object has changed, and the cache does not show it yet"))
	}
	return nil
}

// readCached returns the object as the cache has it. What it refers to is the cache's own: it must be
// copied before it is changed.
func (c *Controller[T]) readCached(ctx context.Context, key types.NamespacedName) (T, bool, error) {
	obj := cached.New[T]()
	err := c.client.Get(ctx, key, obj, client.UnsafeDisableDeepCopy)
	obj.GetObjectKind().SetGroupVersionKind(c.gvk) // the cache has none
	obj.SetManagedFields(nil)                      // half of an object, and nothing reads them
	return obj, err == nil, client.IgnoreNotFound(err)
}

// readLive reads past the cache.
func (c *Controller[T]) readLive(ctx context.Context, key types.NamespacedName) (T, bool, error) {
	liveReads.WithLabelValues(c.name, c.gvk.Kind).Inc()
	obj := cached.New[T]()
	err := c.live.Get(ctx, key, obj)
	return obj, err == nil, client.IgnoreNotFound(err)
}

package loop

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// errStale is the error of a read from a cache that has not seen our own last write.
var errStale = errors.New("the cache has not seen our own last write")

// read returns the object of a pass as the cache has it, or live if the cache lags behind our own
// last write for too long. found is false if there is no such object.
func (c *Controller[T]) read(ctx context.Context, key types.NamespacedName) (obj T, found bool, err error) {
	obj, found, err = c.readCached(ctx, key)
	if err != nil || !found {
		return obj, found, err
	}
	stale, lag := c.memory.stale(obj, c.finalizer)
	if !stale {
		return obj, true, nil
	}
	if lag < staleLimit {
		staleSkips.WithLabelValues(c.name).Inc()
		return obj, true, errStale
	}
	obj, found, err = c.readLive(ctx, key)
	if err != nil || !found {
		return obj, found, errStale
	}
	return obj, true, nil
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
	liveReads.WithLabelValues(c.name).Inc()
	obj := cached.New[T]()
	err := c.live.Get(ctx, key, obj)
	return obj, err == nil, client.IgnoreNotFound(err)
}

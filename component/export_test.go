package component

import "time"

// EndWatchesAfter says how long kinds are watched of which there are no dependents any more.
func (c *Controller[T]) EndWatchesAfter(d time.Duration) { c.worker.idleWatch = d }

// NewTunedReconciler is NewReconciler with options that it does not offer.
func NewTunedReconciler[T Component](name string, g Generator, o ReconcilerOptions, change func(*Options[T])) *Reconciler[T] {
	return newReconciler(name, g, o, change)
}

// RecheckBlocked says when a blocked deletion is tried again although no event came.
func (c *Controller[T]) RecheckBlocked(after time.Duration) { c.engine.Recheck = after }

// WithShards returns options by which ConfigMaps have about n items, and leftovers of other processes are
// deleted at once.
func (o InventoryOptions) WithShards(n int) InventoryOptions {
	o.shard, o.grace = n, 1
	return o
}

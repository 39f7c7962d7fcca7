package store

import "context"

type holdKey struct{}

// HoldDeletes returns a context for one DELETE. Once the registry has decided by what it read that
// the object goes at once, wait is called, and the object goes when that returns: whatever others
// write meanwhile goes with it, as in etcd, where only the request's own preconditions are looked
// at again. An error from wait is the storage's.
func HoldDeletes(ctx context.Context, wait func(context.Context) error) context.Context {
	return context.WithValue(ctx, holdKey{}, wait)
}

// held waits as [HoldDeletes] says.
func held(ctx context.Context) error {
	if wait, ok := ctx.Value(holdKey{}).(func(context.Context) error); ok {
		return wait(ctx)
	}
	return nil
}

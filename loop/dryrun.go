package loop

import "context"

// DryRunner is implemented by a [Reconciler] that can be called for a dry run without further questions: as long as
// [IsDryRun] reports true, it changes nothing except through [Run.Client], whose writes are then dry runs as well.
// The reconcilers of packages external and component implement it.
type DryRunner interface {
	// DryRunSafe reports whether that is so. It always returns the same.
	DryRunSafe() bool
}

// WithDryRun returns the context of a pass whose writes to Kubernetes are dry runs. Only a program that has such a client
// calls it, such as the command "plan" of an operator.
func WithDryRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, dryRunKey{}, true)
}

// IsDryRun reports whether a pass must change nothing in other systems. A [Reconciler] that calls them itself asks before
// each call that is not a read, and implements [DryRunner].
func IsDryRun(ctx context.Context) bool {
	is, _ := ctx.Value(dryRunKey{}).(bool)
	return is
}

type dryRunKey struct{}

// DryRunSafe reports whether the controller's [Reconciler] is a [DryRunner] that can be called for a dry run.
func (c *Controller[T]) DryRunSafe() bool {
	r, ok := as[DryRunner](c.author)
	return ok && r.DryRunSafe()
}

// Package runnable has runnables of a controller-runtime manager that say when they run and for how long.
package runnable

import "context"

// AtOnce runs when the process begins to lead, and returns soon. Package looptest has it return before the first pass.
// A runnable that goes on is a RunnableFunc of the manager's package.
type AtOnce func(context.Context) error

// Standing runs in processes that do not lead, too.
type Standing func(context.Context) error

// Start implements manager.Runnable.
func (f AtOnce) Start(ctx context.Context) error { return f(ctx) }

// Start implements manager.Runnable.
func (f Standing) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Standing) NeedLeaderElection() bool { return false }

// Package runnable has runnables of a manager that say when they run and for how long.
package runnable

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// AtOnce runs when the process begins to lead, and returns soon. A runnable that goes on is a [manager.RunnableFunc].
// Package looptest has it return before the first pass.
type AtOnce func(context.Context) error

// Standing runs in processes that do not lead, too.
type Standing func(context.Context) error

var (
	_ manager.Runnable               = AtOnce(nil)
	_ manager.LeaderElectionRunnable = Standing(nil)
)

// Start implements manager.Runnable.
func (f AtOnce) Start(ctx context.Context) error { return f(ctx) }

// Start implements manager.Runnable.
func (f Standing) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Standing) NeedLeaderElection() bool { return false }

// Package golden marks contexts in which the same must be rendered each time, without a cluster: those of golden files.
package golden

import "context"

type key struct{}

// With returns a context in which functions such as randAlphaNum return something fixed.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether the context is such a one.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }

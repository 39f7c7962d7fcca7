package model

import (
	"context"
	"slices"
)

// Flow is the states in which objects of a kind can be. Its zero value: nothing is known about them.
type Flow struct {
	// Path is the states that an object usually goes through, from its creation on. Some objects are in those of Between before
	// the last one.
	Path, Between []string
	// Failure is the state of an object in which something has failed, and Others are the rest.
	Failure string
	Others  []string
	// Leave are the states after which a condition of their name stays, as False.
	Leave []string
}

// flowOf returns the states of the kinds of packages external and component; docs/status.md and docs/components.md explain them.
func flowOf(n nature) Flow {
	switch n {
	case natureExternal:
		return Flow{
			Path: []string{"Pending", "Creating", "Succeeded"}, Between: []string{"Verifying", "Completing"},
			Failure: "Failed", Others: []string{"Updating", "Recreating", "Terminating"},
			Leave: []string{"Creating", "Updating", "Failed"},
		}
	case natureComponent:
		return Flow{Path: []string{"Pending", "Processing", "Ready"}, Failure: "Error", Others: []string{"DeletionPending", "Deleting"}}
	case natureNone, natureUnknown:
	}
	return Flow{}
}

// Flow returns the states of an object's kind.
func (c *Cluster) Flow(ctx context.Context, o Object) Flow {
	if o.live == nil {
		return Flow{}
	}
	return flowOf(c.natureOf(ctx, o.live))
}

// States returns all states of a flow, those of the path first.
func (f Flow) States() []string {
	if len(f.Path) == 0 {
		return nil
	}
	return slices.Concat(f.Path, f.Between, []string{f.Failure}, f.Others)
}

package fault

import (
	"cmp"
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// Actor is a controller of the cluster that is not under test, such as the StatefulSet controller. Package actors
// has the usual ones. What an actor does is not disturbed.
type Actor struct {
	// Name appears in reports, for example "StatefulSet controller". Required.
	Name string
	// Act does what there is to be done now, and nothing otherwise. It is called whenever something has
	// changed and the operator has nothing to do. It decides by what exists and keeps no state. An error ends
	// the exploration.
	Act func(ctx context.Context, w *World) error
}

// As returns s as something that another controller does, with a name such as "cluster autoscaler". Unlike what
// users make, the operator may change what it makes (invariant I10).
func (s Step) As(controller string) Step {
	s.by = controller
	return s
}

// actor is who acts in a step.
func (s Step) actor() string { return cmp.Or(s.by, history.User) }

// actors are the scenario's actors as a sandbox wants them.
func (s *Scenario) actors() (all []sandbox.Actor, err error) {
	for i, a := range s.Actors {
		switch {
		case a.Name == "" || a.Act == nil:
			return nil, fmt.Errorf("fault: scenario %q: actor %d has no name or no Act; give it both", s.Name, i+1)
		case history.IsReserved(a.Name):
			return nil, fmt.Errorf("fault: scenario %q: an actor is called %q, which is not another controller; give it another name", s.Name, a.Name)
		}
		all = append(all, sandbox.Actor{Name: a.Name, Act: inSandbox(a.Act)})
	}
	return all, nil
}

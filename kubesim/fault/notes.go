package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

// nothingToForge is the note on an operator of which no status can be forged.
const nothingToForge = "the operator writes no conditions into the status of any object, so there is nothing to forge"

// nothingToDrift is the note on an operator that makes no objects.
const nothingToDrift = "the operator makes no objects that exist when a step is over, so nobody can delete or edit any"

// notes say what a scenario leaves unchecked although its author may think otherwise. Each may
// be intended, so none is an error.
type notes struct {
	scenario  *Scenario
	reference run.Result
}

// all are the notes.
func (n *notes) all() []string {
	r := n.reference.Run
	return slices.Concat(n.ofSteps(r), n.ofOperator(r), n.ofExternalAPI(r))
}

// ofSteps are about steps that say or do nothing.
func (n *notes) ofSteps(r *history.Run) (all []string) {
	steps := n.scenario.Steps
	switch expects := slices.ContainsFunc(steps, func(s Step) bool { return s.Expect != nil || s.refused }); {
	case len(steps) == 0:
		all = append(all, "there are no steps, so nothing but the start of the operator is played")
	case !expects:
		all = append(all, "no step expects anything, so whatever the undisturbed run comes to is taken for right; say what it should be with Becomes, Has, Gone or Expecting")
	}
	for i, s := range steps {
		acted := slices.ContainsFunc(r.Changes, func(c history.Change) bool { return c.By == s.actor() && c.Step == i+1 })
		if s.onObject && !s.refused && !acted {
			all = append(all, fmt.Sprintf("step %d, %q, changed nothing", i+1, s.Name))
		}
	}
	return all
}

// ofOperator are about an operator that does nothing, or not where it is seen.
func (n *notes) ofOperator(r *history.Run) (all []string) {
	for _, name := range n.reference.Learned.Unseen {
		all = append(all, fmt.Sprintf("controller %q has a request type of its own: its calls are disturbed, but its reconciles are not seen, so none begins with a stale view and none counts as a hot loop (I13)", name))
	}
	all = append(all, ofWebhooks(r)...)
	switch wrote := slices.ContainsFunc(r.Calls, func(c history.Call) bool { return c.Write }); {
	case wrote:
	case len(r.Passes) == 0 && len(n.reference.Learned.Unseen) == 0:
		all = append(all, "the operator neither reconciled nor wrote anything; its controllers have to be set up with the manager and to watch what the steps make")
	default:
		all = append(all, "the operator wrote nothing, so there is nothing to crash at")
	}
	return all
}

// ofExternalAPI are about a fake that invariants cannot judge by.
func (n *notes) ofExternalAPI(r *history.Run) []string {
	if n.scenario.ExternalAPI == nil {
		return nil
	}
	called := slices.ContainsFunc(r.Calls, func(c history.Call) bool { return c.Side == history.External })
	seen, owned := map[[2]string]bool{}, map[[2]string]bool{}
	var made [][2]string // by the operator
	for _, v := range r.External {
		for _, t := range v.Resources {
			id := [2]string{t.Kind, t.ID}
			if !seen[id] && v.Call != history.Nobody {
				made = append(made, id)
			}
			seen[id] = true
			owned[id] = owned[id] || t.Owner != ""
		}
	}
	unowned := slices.IndexFunc(made, func(id [2]string) bool { return !owned[id] })
	switch {
	case !called:
		return []string{"the external API was never called, so no such call is disturbed; the operator's client has to go through fault.HTTP, or through Read and Write"}
	case len(seen) == 0:
		return []string{"Resources never listed anything, so no external resource can be missed, created twice or left behind (I2, I3, I4, I8)"}
	case unowned >= 0:
		return []string{fmt.Sprintf("%s was created by the operator and never had an Owner, so I2, I3, I4 and I8 do not cover it", strings.Join(made[unowned][:], " "))}
	}
	return nil
}

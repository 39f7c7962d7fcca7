package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
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
	roles     *apiserver.Roles
	// quietUses are the rights that the undisturbed run used.
	quietUses []apiserver.Use
	// raced are the races that changed something; nil if none were played.
	raced map[int]bool
}

// all are the notes.
func (n *notes) all() []string {
	r := n.reference.Run
	return slices.Concat(n.ofSteps(r), n.ofOperator(r), n.ofExternalAPI(r), n.ofExceptions(r), n.ofRaces())
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
	for _, p := range r.Processes {
		for _, leak := range p.KnownLeaks {
			all = append(all, "a library leaves a goroutine behind, as is known: "+leak)
		}
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

// ofExceptions are about exceptions that were not needed.
func (n *notes) ofExceptions(r *history.Run) (all []string) {
	for _, name := range n.scenario.Shared {
		needed := slices.ContainsFunc(r.Changes, func(c history.Change) bool {
			return c.By == history.Operator && c.Before != nil && c.After != nil && strings.TrimSuffix(c.Resource+"."+c.Group, ".") == name
		})
		if !needed {
			all = append(all, fmt.Sprintf("Shared names %s, of which the operator changed none", name))
		}
	}
	for _, path := range n.scenario.Foreign {
		if !slices.ContainsFunc(r.Changes, func(c history.Change) bool { return c.After != nil && state.Has(c.After, path) }) {
			all = append(all, fmt.Sprintf("Foreign names %s, a field that no object had", path))
		}
	}
	if n.roles != nil {
		for _, right := range n.roles.Access(n.quietUses).Needless { // some are used because of a disturbance alone
			all = append(all, fmt.Sprintf("%q is listed as justified, but the undisturbed run used it", right))
		}
	}
	return all
}

// ofRaces are about races that the author named and that never did anything.
func (n *notes) ofRaces() (all []string) {
	for i, s := range n.scenario.Races {
		if changed, played := n.raced[i]; played && !changed {
			all = append(all, fmt.Sprintf("race %q never changed anything, whenever the user came", s.Name))
		}
	}
	return all
}

package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/graph"
)

// record puts the members into the inventory, in the order of their keys.
func (p *pass) record() {
	inventory := make([]api.InventoryItem, 0, len(p.members))
	for _, key := range slices.Sorted(maps.Keys(p.members)) {
		if m := p.members[key]; !m.forgotten {
			inventory = append(inventory, m.item)
		}
	}
	p.c.Status.Inventory = p.memory.retain(p.c.UID, p.c.Status.Inventory, inventory)
}

// phases notes how far the members have come.
func (p *pass) phases(result graph.Result) {
	for _, n := range result.Nodes {
		m := p.members[n.Key]
		m.time(n, p.now())
		live, found := p.Target.Cache.Get(liveKey(m.item))
		if m.item.Status = string(live.Health.Status); !found {
			m.item.Status = ""
		}
		if known, fresh := p.polled(m); m.node && fresh {
			m.item.Status = string(known.health.Status)
		}
		switch {
		case m.kept:
		case n.Wanted && n.Purge == nil && live.Ended && n.Presence == graph.Present && n.Change == graph.NoChange && n.Health == graph.Current:
			m.end()
		case !n.Wanted && n.Presence == graph.Leaving:
			m.item.Phase = api.PhaseDeleting
		case !n.Wanted && m.item.Phase != api.PhaseDeleting:
			m.item.Phase = api.PhaseScheduledForDeletion
		case !n.Wanted:
		case m.item.Phase == api.PhaseCompleting && n.Completed && n.Presence == graph.Absent:
			m.item.Phase = api.PhaseCompleted
		case m.item.Phase == api.PhaseCompleting, m.item.Phase == api.PhaseCompleted:
		case n.Presence == graph.Leaving: // it is created again when it is gone
			m.item.Phase = api.PhaseScheduledForApplication
		case n.Presence == graph.Present && n.Change == graph.NoChange && n.Health == graph.Current:
			m.item.Phase = api.PhaseReady
		case n.Presence == graph.Present && n.Change == graph.NoChange && m.item.Phase == api.PhaseReady:
			m.item.Phase = api.PhaseUpdating // also if it was corrected, and that was not recorded
		}
	}
}

// conclude says what a pass came to.
func (p *pass) conclude(result graph.Result) Result {
	failed := p.refusals(result.Errors)
	out := Result{Ready: result.Plan.Ready, settled: result.Plan.Settled, terminating: terminating(failed), Err: p.failures(failed), Stalled: p.stalled(failed)}
	if len(failed) > 0 {
		out.Skipped = p.skipped(result.Plan, func(key graph.Key) bool { return failed[key] != nil })
	}
	p.dues()
	for _, m := range p.members {
		out.Recorded = out.Recorded || !m.recorded || m.unwritten && !p.deleting
		if m.again > 0 && (out.Again == 0 || m.again < out.Again) {
			out.Again = m.again
		}
	}
	p.late(result.Nodes, &out)
	out.PruneBlocked = p.kept
	out.Drifted = p.reports(func(m *member) string { return m.drift })
	out.Contended = p.reports(func(m *member) string { return m.contended })
	if !out.Ready {
		out.Waiting, out.Failed = p.waiting(result.Plan), p.broken(result)
		if why := p.heldBy(); why != "" {
			out.Waiting, out.Reason = why, DeletionBlocked
		}
		if p.kept != "" && result.Plan.Settled {
			out.Waiting, out.Reason = p.kept, PruneBlocked
		}
	}
	return out
}

// refusals adds the members to which nothing may be done to what went wrong.
func (p *pass) refusals(failed map[graph.Key]error) map[graph.Key]error {
	for key, m := range p.members {
		if m.failed != nil && failed[key] == nil && !p.abandoned(m) {
			failed[key] = m.failed
		}
		if m.refused != "" && m.again == 0 && failed[key] == nil {
			failed[key] = fmt.Errorf("%s %s", ref(m.item), m.refused)
		}
	}
	return failed
}

// mostNamed is how many objects a message names.
const mostNamed = 5

// failures joins what went wrong: how often, and the first of it by name.
func (p *pass) failures(errs map[graph.Key]error) error {
	if len(errs) == 0 {
		return nil
	}
	var list []error
	for _, key := range slices.Sorted(maps.Keys(errs)) {
		list = append(list, errs[key])
	}
	if len(list) == 1 {
		return list[0]
	}
	named := errors.Join(list[:min(len(list), mostNamed)]...)
	text := strings.ReplaceAll(named.Error(), "\n", "; ")
	if more := len(list) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &failuresError{text: fmt.Sprintf("%d of %d dependents failed: %s", len(list), len(p.members), text), all: list}
}

// failuresError is several failures of one pass.
type failuresError struct {
	text string
	all  []error
}

func (e *failuresError) Error() string   { return e.text }
func (e *failuresError) Unwrap() []error { return e.all }

// causes are the members that are waited for, and why.
func causes(plan graph.Plan) map[graph.Key]string {
	all := map[graph.Key]string{}
	for _, step := range plan.Waiting {
		for _, wait := range step.On {
			all[wait.Key] = wait.Why
		}
	}
	return all
}

// named returns the members that a message names.
func named(causes map[graph.Key]string) []graph.Key {
	keys := slices.Sorted(maps.Keys(causes))
	return keys[:min(len(keys), mostNamed)]
}

// waiting says what is waited for: the causes, each once.
func (p *pass) waiting(plan graph.Plan) string {
	all := causes(plan)
	maps.DeleteFunc(all, func(_ graph.Key, why string) bool { return why == heldForHooks })
	if len(all) > 0 {
		return "waiting for " + p.explain(all)
	}
	return "waiting for dependents that have just changed"
}

// broken says which dependents have their manifest and failed with it.
func (p *pass) broken(result graph.Result) string {
	all := map[graph.Key]string{}
	for _, n := range result.Nodes {
		if n.Wanted && n.Presence == graph.Present && n.Change == graph.NoChange && n.Health == graph.Failed {
			all[n.Key] = "has failed"
		}
	}
	if len(all) == 0 {
		return ""
	}
	return p.explain(all) + p.skipped(result.Plan, func(key graph.Key) bool { return all[key] != "" })
}

// skipped says what is not done because of dependents that failed. It continues a sentence about them.
func (p *pass) skipped(plan graph.Plan, failed func(graph.Key) bool) string {
	keys := skipped(plan, failed)
	if len(keys) == 0 {
		return ""
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = ref(p.members[key].item).String()
	}
	return "; skipped because of that: " + naming(names)
}

// explain says of members what they lack.
func (p *pass) explain(all map[graph.Key]string) string {
	texts := make([]string, 0, len(all))
	for i, key := range slices.Sorted(maps.Keys(all)) {
		text := ""
		if i < mostNamed {
			text = p.waitFor(key, all[key])
		}
		texts = append(texts, text)
	}
	return naming(texts)
}

// waitFor says what is waited for of one member, in the words of its health if that is the cause.
func (p *pass) waitFor(key graph.Key, why string) string {
	m := p.members[key]
	if m.node {
		return p.waitForNode(m, why)
	}
	switch live, found := p.Target.Cache.Get(liveKey(m.item)); {
	case m.unobserved != nil:
		why = fmt.Sprintf("cannot be observed: %v", m.unobserved)
	case m.holder != "":
		why = "is being deleted, held by " + m.holder
	case found && live.Health.Why != "":
		why = live.Health.Why
	}
	return fmt.Sprintf("%s: it %s", ref(m.item), why)
}

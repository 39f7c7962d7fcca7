package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
)

// allowKey is the annotation of a component that allows its present generation to lose most of its
// dependents.
func allowKey(name string) string { return name + "/allow-prune" }

// shrinks keeps the members that left the manifests if these are most of them, or all: rather than by
// intent that happens by a renderer that fails silently. That they are kept is recorded: whatever else is
// rendered later does not change what is said of them.
func (p *pass) shrinks() {
	limit := cmp.Or(p.PruneLimit, half)
	generation := strconv.FormatInt(p.c.Generation, 10)
	if limit >= 1 || p.c.Annotations[allowKey(p.Name)] == generation {
		for _, m := range p.members {
			m.item.Kept = false
		}
		return
	}
	few := p.few(limit)
	kept := 0
	for _, m := range p.members {
		if m.wanted == nil && (m.item.Kept || few && !leavingPhase(m.item.Phase)) {
			m.item.Kept, m.kept = true, true
			kept++
		}
	}
	if kept == 0 {
		return
	}
	staying := kept // what goes in this pass is not counted: no pass may follow that would say so
	for _, m := range p.members {
		if m.wanted != nil {
			staying++
		}
	}
	p.kept = fmt.Sprintf("%d of %d dependents are no longer rendered, and are kept; set %s: %q on the component to delete them",
		kept, staying, allowKey(p.Name), generation)
	for _, m := range p.members {
		if m.kept {
			m.held = p.kept
		}
	}
}

// few reports whether too few members are left of those that were recorded and not kept before, applied or not. What
// was only added does not count: it makes up for nothing that is lost.
func (p *pass) few(limit float64) bool {
	if len(p.unrendered) > 0 { // what is missing may still be rendered, and stays until then
		return false
	}
	before, left := 0, 0
	var lost, added []api.InventoryItem
	kept, recorded := map[string]bool{}, map[string]bool{}
	for _, item := range p.c.Status.Inventory {
		kept[item.Key()], recorded[item.Key()] = item.Kept, true
	}
	for _, m := range p.members {
		switch key := m.item.Key(); {
		case kept[key], m.wanted == nil && (leavingPhase(m.item.Phase) || m.ended()): // what has ended is no loss
		case m.wanted == nil:
			before++
			lost = append(lost, m.item)
		case m.wanted.Uncounted:
			added = append(added, m.item)
		case recorded[key], m.item.UID != "", len(m.item.Record) > 0: // the last two: found after the inventory was lost
			before++
			left++
		default:
			added = append(added, m.item)
		}
	}
	left += replaced(lost, added)
	return before > 0 && left == 0 || float64(before-left) > limit*float64(before)
}

// replaced counts the lost objects that only have another name: one is added of their kind and namespace whose name
// differs in what comes after the last hyphen, which is a hash of the contents or a version.
func replaced(lost, added []api.InventoryItem) int {
	stem := func(item api.InventoryItem) string {
		key := item.Key()
		if at := strings.LastIndexByte(key, '-'); at > strings.LastIndexByte(key, '/') {
			return key[:at]
		}
		return key
	}
	free := map[string]int{}
	for _, item := range added {
		free[stem(item)]++
	}
	n := 0
	for _, item := range lost {
		if s := stem(item); free[s] > 0 {
			free[s]--
			n++
		}
	}
	return n
}

// half is the share of its dependents that a component can lose at a time unless the operator says
// otherwise.
const half = 0.5

// leavingPhase reports whether a dependent is on its way out already.
func leavingPhase(phase api.Phase) bool {
	return phase == api.PhaseScheduledForDeletion || phase == api.PhaseDeleting
}

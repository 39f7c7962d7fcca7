package engine

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/trimtab-dev/trimtab/api"
)

// allowKey is the annotation of a component that allows its present generation to lose most of its
// dependents.
func allowKey(name string) string { return name + "/allow-prune" }

// shrinks keeps the members that left the manifests if these are most of them, or all: rather than by
// intent that happens by a renderer that fails silently.
func (p *pass) shrinks() {
	before, left := 0, 0
	for _, item := range p.c.Status.Inventory {
		if !leavingPhase(item.Phase) {
			before++
		}
	}
	for _, m := range p.members {
		if m.wanted != nil {
			left++
		}
	}
	limit := cmp.Or(p.PruneLimit, half)
	few := before > 0 && left == 0 || float64(before-left) > limit*float64(before)
	allowed := p.c.Annotations[allowKey(p.Name)] == strconv.FormatInt(p.c.Generation, 10)
	if !few || limit >= 1 || allowed {
		return
	}
	p.kept = fmt.Sprintf("%d of %d dependents are no longer rendered, and are kept; set %s: %q on the component to delete them",
		before-left, before, allowKey(p.Name), strconv.FormatInt(p.c.Generation, 10))
	for _, m := range p.members {
		if m.wanted == nil && !leavingPhase(m.item.Phase) {
			m.held, m.kept = p.kept, true
		}
	}
}

// half is the share of its dependents that a component can lose at a time unless the operator says
// otherwise.
const half = 0.5

// leavingPhase reports whether a dependent is on its way out already.
func leavingPhase(phase api.Phase) bool {
	return phase == api.PhaseScheduledForDeletion || phase == api.PhaseDeleting
}

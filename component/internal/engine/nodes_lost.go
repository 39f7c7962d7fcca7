package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// unrecorded, as a value of the annotation abandon, gives up what an inventory listed that is lost.
const unrecorded = "unrecorded"

// mayHaveNodes reports whether a component whose inventory is lost may have had nodes that are still there. As
// what is rendered is recorded before it is applied, it may not if nothing was ever recorded, and if the last
// manifests, which were all applied, had nothing.
func (p *pass) mayHaveNodes() bool {
	s := p.c.Status
	digest, _, _ := strings.Cut(s.ProcessingDigest, "@")
	switch {
	case !p.remembers():
		return false
	case p.c.Lost:
		return true
	case digest == digestOf(nil) && s.ProcessingSince == nil:
		return false
	}
	return digest != "" || s.LastAppliedAt != nil
}

// givesUpUnrecorded reports whether the component gives up what is no longer recorded.
func (p *pass) givesUpUnrecorded() bool {
	return slices.ContainsFunc(strings.Split(p.c.Annotations[abandonKey(p.Name)], ","), func(key string) bool {
		return strings.TrimSpace(key) == unrecorded
	})
}

// unrenderedError is why a deletion cannot go on whose inventory is lost.
func (p *pass) unrenderedError(err error) error {
	return fmt.Errorf("the inventory is lost, and without the manifests it is not known which dependents are to stay and which "+
		"external resources there are; restore status.inventory or what rendering needs, or set %s: %s on the component to "+
		"leave what is not recorded: %w", abandonKey(p.Name), unrecorded, err)
}

// keepForAnother holds the deletion of a node that another component has recorded, too. It reports whether there
// is one. A node whose deletion has begun, or that was never ready here, is not held: it may be that this
// component was the one that had to wait.
func (p *pass) keepForAnother(ctx context.Context, m *member) (claimed bool, err error) {
	if p.c.Claims == nil || forgetful(m) || m.item.Phase == api.PhaseDeleting {
		return false, nil
	}
	if seen, err := m.driver.Observed(m.item.Record); err != nil || seen == nil {
		return false, err
	}
	claims, err := p.c.Claims(ctx, []string{m.item.Key()})
	if err != nil {
		return false, fmt.Errorf("ask which components have recorded %s: %w", ref(m.item), err)
	}
	to, claimed := claims[m.item.Key()]
	if claimed {
		_, name, _ := strings.Cut(to.Owner, "/")
		m.held = fmt.Sprintf("is not deleted because %s has recorded it, too; remove it there, or %s in place and adopt it there",
			name, p.abandoning(m))
		m.again = p.recheck()
	}
	return claimed, nil
}

// remembers reports whether there is a driver that can find its nodes without a record.
func (p *pass) remembers() bool {
	for _, d := range p.Drivers {
		if !d.About().Forgetful {
			return true
		}
	}
	return false
}

// remember finds the rendered nodes of a component whose inventory is lost.
func (p *pass) remember(ctx context.Context, objects []desired.Object) error {
	var problems []error
	for i := range objects {
		o := &objects[i]
		if d := p.Drivers[kindOf(o.Item)]; d != nil && !d.About().Forgetful {
			m := &member{item: o.Item, wanted: o, node: true, driver: d}
			problems = append(problems, p.prepareOne(ctx, m))
			p.found = append(p.found, m.item)
		}
	}
	return errors.Join(problems...)
}

package invariant

import (
	"fmt"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// remaking is how often the operator created a child of one name for one incarnation of its owner, because it had
// deleted the one before itself.
type remaking struct {
	owner, child *life
	times        int
	call         int // of the last delete
}

// remakings are all of them, by the UID of the owner and the key of the child.
func (x *index) remakings() map[string]*remaking {
	all := map[string]*remaking{}
	for _, l := range x.all {
		owner := x.controllerOf(x.run.Changes[l.changes[0]].After)
		if l.by != operator || owner == nil {
			continue
		}
		key := owner.uid + " " + l.key
		m := all[key]
		if m == nil {
			m = &remaking{owner: owner, child: l, call: history.Nobody}
			all[key] = m
		}
		m.times++
		if call := x.deletedBy(l); call != history.Nobody {
			m.call = call
		}
	}
	return all
}

// deletedBy is the call with which the operator deleted an object, [history.Nobody] if it did not.
func (x *index) deletedBy(l *life) int {
	for _, i := range l.changes {
		c := &x.run.Changes[i]
		if c.By == operator && c.Before != nil && c.Before.GetDeletionTimestamp() == nil && (c.After == nil || c.After.GetDeletionTimestamp() != nil) {
			return c.Call
		}
	}
	return history.Nobody
}

// findRemade is I3 for what an operator does by old caches: it does not delete what it has created for an owner to create
// it again. The end is the same, but what was in it is lost, and so is the time.
func findRemade(r, u *index) []history.Violation {
	if !slices.ContainsFunc(r.run.Faults, func(f history.Fault) bool { return f.Kind == schedule.OldCache }) {
		return nil
	}
	usual := map[string]int{}
	for _, m := range u.remakings() {
		key := m.owner.key + " " + m.child.key
		usual[key] = max(usual[key], m.times)
	}
	var found []history.Violation
	for _, m := range r.remakings() {
		if most := max(1, usual[m.owner.key+" "+m.child.key]); m.call != history.Nobody && m.times > most {
			found = append(found, history.Violation{Call: m.call, Subjects: []string{"remade " + m.child.key}, Message: fmt.Sprintf(
				"the operator deleted %s and created it again: %d times for %s, %d without the disturbance", m.child.key, m.times, m.owner.key, most)})
		}
	}
	slices.SortFunc(found, func(a, b history.Violation) int { return a.Call - b.Call })
	return found
}

package invariant

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// WrongOwner says which external resource has an owner that fits no object that there ever was, and
// what would fit. It is empty if there is none. What has a wrong owner is never missed, counted or
// waited for: I2, I3, I4 and I8 would be silent about it.
func WrongOwner(r *history.Run) string {
	x := newIndex(r)
	for _, v := range r.External {
		for _, t := range v.Resources {
			if t.Owner == "" || x.lives[t.Owner] != nil || len(x.named[t.Owner]) > 0 {
				continue
			}
			return fmt.Sprintf("external resource %s has the owner %q, which fits no object that there ever was; "+
				"Resources has to return the UID or namespace/name of the object that it was made for%s, and an empty Owner for what is not the operator's",
				idOf(t), t.Owner, x.likely(idOf(t)))
		}
	}
	return ""
}

// likely names, for example, the object whose reconcile made a resource; nothing if none did.
func (x *index) likely(id externalID) string {
	made := x.madeBy(id)
	p := x.passOf(made)
	if p == nil {
		return ""
	}
	l := x.owner(history.Resource{Owner: p.Object}, made)
	if l == nil {
		return ""
	}
	return fmt.Sprintf(", such as %q or %q for %s", l.uid, l.name, l.key)
}

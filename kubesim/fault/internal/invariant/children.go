package invariant

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// brood is the most objects of one kind and content that the operator had created at once for one incarnation of an owner,
// under names that the server generates or the operator chooses at random. Nothing but a count keeps such objects from being created twice.
type brood struct {
	owner *life
	kind  string
	names []string
	call  int // that created the last of them
}

// broods returns the largest brood of each owner and kind.
func (x *index) broods() []brood {
	var all []brood
	living := map[string][]*unstructured.Unstructured{} // by owner's UID, kind and content
	where := map[types.UID]string{}                     // the key in living, by UID
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		uid := c.Object().GetUID()
		if key, is := where[uid]; is {
			living[key] = slices.DeleteFunc(living[key], func(u *unstructured.Unstructured) bool { return u.GetUID() == uid })
			delete(where, uid)
		}
		owner := x.controllerOf(c.After)
		kind := strings.TrimSuffix(c.Resource+"."+c.Group, ".")
		if owner == nil || !x.isGenerated(kind, c.After) || c.After.GetDeletionTimestamp() != nil || x.lives[string(uid)].by != operator {
			continue
		}
		key := fmt.Sprint(owner.uid, kind, contentOf(c.After))
		living[key], where[uid] = append(living[key], c.After), key
		if c.Before == nil {
			all = larger(all, brood{owner, kind, namesOf(living[key]), c.Call})
		}
	}
	return all
}

// isGenerated reports whether the name of an object differs each time.
func (x *index) isGenerated(kind string, u *unstructured.Unstructured) bool {
	return u.GetGenerateName() != "" || x.run.IsRandom != nil && x.run.IsRandom(kind, u.GetName())
}

// larger replaces the brood of the same owner and kind by b, if that is larger.
func larger(all []brood, b brood) []brood {
	i := slices.IndexFunc(all, func(o brood) bool { return o.owner == b.owner && o.kind == b.kind })
	if i < 0 {
		return append(all, b)
	}
	if len(b.names) > len(all[i].names) {
		all[i] = b
	}
	return all
}

// usualBroods returns how large broods are, by owner and kind. A successor of an owner is to have no more than the
// owner had, if it wants nothing else.
func (x *index) usualBroods() map[string]int {
	usual := map[string]int{}
	specs := map[string]bool{}
	all := x.broods()
	for _, l := range x.all {
		news := false
		for _, i := range l.changes {
			if u := x.run.Changes[i].After; u != nil {
				spec := fmt.Sprint(l.key, u.Object["spec"])
				news = news || !specs[spec]
				specs[spec] = true
			}
		}
		for _, b := range all {
			if news && b.owner == l {
				usual[l.key+" "+b.kind] = max(usual[l.key+" "+b.kind], len(b.names))
			}
		}
	}
	return usual
}

// controllerOf returns the owner that controls an object; nil if there is none, or no object.
func (x *index) controllerOf(u *unstructured.Unstructured) *life {
	if u == nil {
		return nil
	}
	for _, o := range u.GetOwnerReferences() {
		if o.Controller != nil && *o.Controller {
			return x.lives[string(o.UID)]
		}
	}
	return nil
}

// contentOf is what an author writes into an object, besides its name and annotations.
func contentOf(u *unstructured.Unstructured) string {
	all := map[string]any{"labels": u.GetLabels()}
	for field, value := range u.Object {
		if field != "metadata" && field != "status" {
			all[field] = value
		}
	}
	return fmt.Sprint(all) // maps are printed in the order of their keys
}

func namesOf(all []*unstructured.Unstructured) []string {
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = u.GetName()
	}
	return names
}

// findSurplus is I3 for Kubernetes objects that the operator creates under generated names: of those that are equal, one
// owner never has more than in the undisturbed run, not even until the operator notices.
func findSurplus(r, u *index) []history.Violation {
	var found []history.Violation
	for _, b := range r.broods() {
		if usual := max(1, u.known.broods[b.owner.key+" "+b.kind]); len(b.names) > usual {
			found = append(found, history.Violation{Call: b.call, Subjects: []string{b.kind + " of " + b.owner.key}, Message: fmt.Sprintf(
				"%s has %d equal %s at once (%s), %d without the disturbance",
				b.owner.key, len(b.names), b.kind, listed(b.names), usual)})
		}
	}
	return found
}

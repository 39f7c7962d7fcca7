package invariant

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// findTrespasses is I10: what is not the operator's is left alone.
func findTrespasses(r, u *index) []history.Violation {
	found := r.findBlindDeletes()
	kinds := maps.Clone(u.known.kinds)
	if r != u {
		maps.Copy(kinds, r.ownKinds())
	}
	for _, k := range r.run.Shared {
		resource, group, _ := strings.Cut(k, ".")
		kinds[group+"/"+resource] = true
	}
	writers := map[string]string{} // who put a mark on an object: "UID finalizer x"
	for i := range r.run.Changes {
		c := &r.run.Changes[i]
		if c.By != operator {
			noteMarks(writers, c)
			continue
		}
		if c.Before != nil && !history.Housekeeping(c.Group, c.Resource) {
			if c.After != nil {
				found = append(found, r.overwritten(c, kinds)...)
			}
			found = append(found, r.findDropped(c, writers, u)...)
		}
		noteMarks(writers, c)
	}
	return append(found, r.findExternalTrespasses(u)...)
}

// removedMarks are the marks that the operator removes from objects.
func (x *index) removedMarks() map[string]bool {
	removed := map[string]bool{}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By == operator && c.Before != nil && c.After != nil {
			for _, lost := range lostKeys(c) {
				removed[c.Resource+" "+lost] = true
			}
		}
	}
	return removed
}

// findBlindDeletes finds deletes of objects that may be others'.
func (x *index) findBlindDeletes() []history.Violation {
	var found []history.Violation
	tell := func(call int, l *life) {
		found = append(found, history.Violation{Call: call, Message: fmt.Sprintf(
			"%s was deleted without a UID precondition; the operator neither made it nor marked it as its own", l.key)})
	}
	for i := range x.run.Calls {
		c := &x.run.Calls[i]
		if c.Side != history.Kubernetes || c.Verb != "delete" || c.PreconditionUID+c.PreconditionRV != "" || c.Subresource != "" || history.Housekeeping(c.Group, c.Resource) {
			continue
		}
		key := state.Key(c.Group, c.Resource, c.Namespace, c.Name)
		for _, l := range x.named[nameOf(c.Namespace, c.Name)] {
			if l.key == key && x.before(l, i) != nil && !x.owns(l, i) {
				tell(i, l)
			}
		}
	}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By != operator || c.After != nil || c.Call < 0 || x.run.Calls[c.Call].Verb != "deletecollection" || history.Housekeeping(c.Group, c.Resource) {
			continue
		}
		if l := x.lives[string(c.Before.GetUID())]; !x.owns(l, c.Call) {
			tell(c.Call, l)
		}
	}
	return found
}

// owns reports whether, before a call, the operator had made an object or marked it as its own.
func (x *index) owns(l *life, call int) bool {
	if l.by == operator {
		return true
	}
	u := x.before(l, call)
	return l.mine || u != nil && slices.ContainsFunc(u.GetFinalizers(), func(f string) bool { return x.finalizers[f] })
}

// ownKinds are the kinds that the operator is there for: it writes their status, puts finalizers
// on them, has a controller named after them, or they are custom.
func (x *index) ownKinds() map[string]bool {
	kinds := map[string]bool{}
	for _, l := range x.all {
		builtin := !strings.Contains(l.group, ".") || strings.HasSuffix(l.group, ".k8s.io")
		if !builtin {
			kinds[l.group+"/"+l.resource] = true
		}
		for _, i := range l.changes {
			c := &x.run.Changes[i]
			if kinds[l.group+"/"+l.resource] {
				break
			}
			if c.By == operator && c.Before != nil && c.After != nil && x.isPrimary(l, c) {
				kinds[l.group+"/"+l.resource] = true
			}
		}
	}
	for i := range x.run.Passes {
		p := &x.run.Passes[i]
		for _, l := range x.named[p.Object] {
			if strings.HasPrefix(l.resource, strings.ToLower(p.Controller)) {
				kinds[l.group+"/"+l.resource] = true
			}
		}
	}
	return kinds
}

// isPrimary reports whether a change is of the sort that controllers make to what they are for.
func (x *index) isPrimary(l *life, c *history.Change) bool {
	if !reflect.DeepEqual(c.Before.Object["status"], c.After.Object["status"]) {
		return true
	}
	return l.by != operator && len(c.After.GetFinalizers()) > len(c.Before.GetFinalizers())
}

// overwritten finds a change to the content of an object that a user made and that is of no kind of the
// operator's. Marks in its metadata are not content. What other controllers make for a user, such as the claim of
// a StatefulSet, is often the operator's to change.
func (x *index) overwritten(c *history.Change, kinds map[string]bool) []history.Violation {
	l := x.lives[string(c.After.GetUID())]
	if l.by == operator || kinds[l.group+"/"+l.resource] || ownedByKind(c.Before) || history.IsController(l.by) {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(c.Before.Object)) {
		if key == "metadata" || key == "status" || reflect.DeepEqual(c.Before.Object[key], c.After.Object[key]) {
			continue
		}
		return []history.Violation{{Call: c.Call, Message: fmt.Sprintf(
			"%s was overwritten (%s); the operator did not make it, the %s did; if that is meant, name the kind in Shared", l.key, key, l.by)}}
	}
	return nil
}

// ownedByKind reports whether an object belongs to another one anyway, so whoever made it may have
// made it for the operator.
func ownedByKind(u *unstructured.Unstructured) bool { return len(ownersOf(u)) > 0 }

// marks are what several writers share on one object: each has its own.
func marks(u *unstructured.Unstructured) []string {
	if u == nil {
		return nil
	}
	var all []string
	for _, f := range u.GetFinalizers() {
		if f != "foregroundDeletion" && f != "orphan" {
			all = append(all, "finalizer "+f)
		}
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"label", "annotation"} {
		m, _ := metadata[field+"s"].(map[string]any)
		for key := range m {
			all = append(all, field+" "+key)
		}
	}
	for _, c := range conditionsOf(u) {
		all = append(all, "condition "+c.kind)
	}
	return all
}

// noteMarks notes who put which marks on an object.
func noteMarks(writers map[string]string, c *history.Change) {
	if c.After == nil {
		return
	}
	before := marks(c.Before)
	for _, m := range marks(c.After) {
		if !slices.Contains(before, m) {
			writers[string(c.After.GetUID())+" "+m] = c.By
		}
	}
}

// lostKeys are the marks that a change removes.
func lostKeys(c *history.Change) []string {
	before := marks(c.Before)
	if len(before) == 0 {
		return nil
	}
	after := marks(c.After)
	return slices.DeleteFunc(before, func(m string) bool { return slices.Contains(after, m) })
}

// findDropped finds marks of others that the operator removed. What it removes of users' marks
// without a disturbance too is how it works with users.
func (x *index) findDropped(c *history.Change, writers map[string]string, u *index) []history.Violation {
	if len(writers) == 0 {
		return nil
	}
	var found []history.Violation
	lost := lostKeys(c)
	slices.Sort(lost)
	for _, m := range lost {
		by := writers[string(c.Before.GetUID())+" "+m]
		finalizer, is := strings.CutPrefix(m, "finalizer ")
		if !is && c.After == nil { // everything goes with an object that is deleted, but a finalizer keeps it
			continue
		}
		if by == "" || by == operator || is && (x.finalizers[finalizer] || u.finalizers[finalizer]) || by != "foreign" && u.known.removed[c.Resource+" "+m] {
			continue
		}
		found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf(
			"the %s of %s is gone; %s had put it there and the operator removed it", m, state.Key(c.Group, c.Resource, c.Namespace, c.Name), who(by))})
	}
	return found
}

func who(by string) string {
	switch by {
	case "foreign":
		return "another controller"
	case "user":
		return "a user"
	}
	return "the " + by
}

// findExternalTrespasses finds calls that change external resources that are nobody's or others'.
// What the operator takes over without a disturbance, it is meant to take over.
func (x *index) findExternalTrespasses(u *index) []history.Violation {
	var found []history.Violation
	made := map[externalID]bool{}
	for i, v := range x.run.External {
		before, now := x.viewed(i-1), x.viewed(i)
		for id := range now {
			if _, was := before[id]; !was {
				made[id] = v.Call != history.Nobody
			}
		}
		if v.Call == history.Nobody {
			continue
		}
		for _, id := range slices.SortedFunc(maps.Keys(before), func(a, b externalID) int { return strings.Compare(a.String(), b.String()) }) {
			was := before[id]
			is, still := now[id]
			if was.Owner != "" || made[id] || still && (is == was || is.Owner != "" && u.known.adopted[id]) {
				continue
			}
			what := "changed"
			switch {
			case !still:
				what = "removed"
			case is.Owner != "":
				what = "taken over"
			}
			found = append(found, history.Violation{Call: v.Call, Message: fmt.Sprintf(
				"external resource %s was %s; it is not the operator's", id, what)})
		}
	}
	return found
}

// adopted are the resources that get an owner though somebody else made them.
func (x *index) adopted() map[externalID]bool {
	all := map[externalID]bool{}
	for i, v := range x.run.External {
		before := x.viewed(i - 1)
		for _, t := range v.Resources {
			if was, ok := before[idOf(t)]; ok && was.Owner == "" && t.Owner != "" {
				all[idOf(t)] = true
			}
		}
	}
	return all
}

package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// findDivergence is I1: each step ends as in the undisturbed run, and as it expects. A step that did not end has no
// state to compare.
func findDivergence(r, u *index) []history.Violation {
	for i, s := range r.run.Steps {
		if i >= len(u.run.Steps) {
			break
		}
		want, got := u.run.Steps[i].State, s.State
		if got.Objects == nil || want.Objects == nil {
			continue
		}
		met := state.Matches(want, got)
		if !met {
			want, got = state.Young(want, got, state.AgedBy(r.run, u.run, i, func(key string) time.Time { return r.changedAt(key, s.Settled) }))
			want, got = r.comparable(state.WithoutLost(want, got, r.emptied()), got)
		}
		switch {
		case !state.Matches(want, got):
			return []history.Violation{divergence(s, want, got)}
		case met && s.Unmet != "":
			return []history.Violation{{
				Message: fmt.Sprintf("the expectation of step %q is not met, as it is without the disturbance: %s", s.Name, shortened(s.Unmet)),
				Call:    history.Nobody, Subjects: []string{"expectation: " + withoutNumbers(s.Unmet)},
			}}
		}
	}
	return nil
}

// changedAt is when the object with a key changed last before a moment, or the moment if that is not known.
func (x *index) changedAt(key string, before time.Time) time.Time {
	at := time.Time{}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if !c.At.After(before) && state.Key(c.Group, c.Resource, c.Namespace, c.Name) == key {
			at = c.At
		}
	}
	if at.IsZero() {
		return before
	}
	return at
}

// comparable leaves out of two states what may differ. If all that differs may, they are the same.
func (x *index) comparable(want, got history.State) (_, _ history.State) {
	want, got = x.withoutDependents(want, got)
	if x.isLessOfTheDeleted(want, got) {
		return want, want
	}
	return want, got
}

// divergence says how a step ended otherwise than it should have.
func divergence(s history.Step, want, got history.State) history.Violation {
	all := state.Differences(want, got)
	subjects := make([]string, len(all))
	for n, d := range all {
		subjects[n] = d.Subject
	}
	slices.Sort(subjects)
	message := differing(all) + fmt.Sprintf(", at the end of step %q", s.Name)
	if s.Unmet != "" {
		message += ", which expects otherwise: " + shortened(s.Unmet)
	}
	return history.Violation{Message: message, Subjects: slices.Compact(subjects), Detail: state.Diff(want, got), Call: history.Nobody}
}

// shortened is as much of an author's error as is good for a sentence.
func shortened(text string) string {
	const most = 200
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// isLessOfTheDeleted reports whether a state lacks only what was never made because a user had deleted an object
// by then, and differs in nothing else: without the disturbance the same user came later.
func (x *index) isLessOfTheDeleted(want, got history.State) bool {
	if len(x.deletedByRaces()) == 0 || !slices.Equal(want.Resources, got.Resources) {
		return false
	}
	for key, sheet := range got.Objects {
		if want.Objects[key] != sheet {
			return false
		}
	}
	made := map[string]bool{}
	for _, l := range x.all {
		made[l.key] = true
	}
	for key := range want.Objects {
		if _, is := got.Objects[key]; !is && made[key] {
			return false
		}
	}
	return true
}

// differing says what is different, and how much more.
func differing(all []state.Difference) string {
	switch n := len(all) - 1; n {
	case -1: // the order of what is the same, perhaps
		return "the state differs from that without the disturbance"
	case 0:
		return all[0].Text
	case 1:
		return all[0].Text + ", and one more difference"
	default:
		return fmt.Sprintf("%s, and %d more differences", all[0].Text, n)
	}
}

// findLeaks is I2: nothing that was made for an object outlives it.
func findLeaks(r, _ *index) []history.Violation {
	last := len(r.run.External) - 1
	if last < 0 {
		return nil
	}
	var found []history.Violation
	for _, t := range r.run.External[last].Resources {
		l := r.owner(t, len(r.run.Calls))
		if t.Owner == "" || l == nil || !l.gone {
			continue
		}
		found = append(found, history.Violation{
			Message: fmt.Sprintf("external resource %s still exists, but the object that it was made for, %s, is gone; nothing will remove it",
				idOf(t), l.key),
			Detail: "If it is to be kept, its Owner has to be empty by then.",
			Call:   r.madeBy(idOf(t)), Subjects: []string{"external " + t.Kind + " of " + l.key},
		})
	}
	return found
}

// madeBy returns the call that made a resource last.
func (x *index) madeBy(id externalID) int {
	call := history.Nobody
	was := false
	for i, v := range x.run.External {
		_, is := x.viewed(i)[id]
		if is && !was {
			call = v.Call
		}
		was = is
	}
	return call
}

// making is the external resources of one kind that an operator made for one incarnation of an object.
type making struct {
	owner, uid, kind string
	ids              []string // in order; one that was made twice is in it twice
	calls            []int
	lost             int // how many of them went without the operator
	atOnce           []string
	atOnceCall       int
}

// makings returns the external resources that were made, in order.
func (x *index) makings() []*making {
	c := census{index: x, fresh: map[externalID]bool{}}
	before := x.viewed(-1)
	for i, v := range x.run.External {
		now := x.viewed(i)
		c.count(i, before)
		if v.Call == history.Nobody {
			c.countLost(i, before, now)
		}
		before = now
	}
	return c.all
}

// census counts what is made, view by view.
type census struct {
	*index
	all   []*making
	fresh map[externalID]bool // made by the operator, not yet counted
}

// of returns the making that a resource belongs to.
func (c *census) of(t history.Resource, view int) *making {
	owner, uid := t.Owner, ""
	if l := c.owner(t, c.viewAt[view]); l != nil {
		owner, uid = l.key, l.uid
	}
	i := slices.IndexFunc(c.all, func(m *making) bool { return m.owner == owner && m.uid == uid && m.kind == t.Kind })
	if i < 0 {
		c.all = append(c.all, &making{owner: owner, uid: uid, kind: t.Kind})
		i = len(c.all) - 1
	}
	return c.all[i]
}

// count counts what is new in a view, and how many of a kind there are at once. What gets its
// owner later was made when it got it.
func (c *census) count(view int, before map[externalID]history.Resource) {
	call := c.run.External[view].Call
	present := map[*making][]string{}
	for _, t := range c.run.External[view].Resources {
		id := idOf(t)
		if _, was := before[id]; !was {
			c.fresh[id] = call != history.Nobody
		}
		if t.Owner == "" {
			continue
		}
		m := c.of(t, view)
		if c.fresh[id] {
			m.ids, m.calls = append(m.ids, t.ID), append(m.calls, call)
			delete(c.fresh, id)
		}
		present[m] = append(present[m], t.ID)
		if call != history.Nobody && len(present[m]) > len(m.atOnce) {
			m.atOnce, m.atOnceCall = present[m], call
		}
	}
}

// countLost counts what had an owner before a view and is gone in it.
func (c *census) countLost(view int, before, now map[externalID]history.Resource) {
	for id, t := range before {
		if _, is := now[id]; !is && t.Owner != "" {
			c.of(t, view).lost++
		}
	}
}

// findDuplicates is I3: for one object no more is made than in the undisturbed run.
func findDuplicates(r, u *index) []history.Violation {
	return slices.Concat(findTwins(r, u), findSurplus(r, u), findRemade(r, u))
}

// findTwins is I3 for external resources.
func findTwins(r, u *index) []history.Violation {
	if len(r.run.External) < 2 {
		return nil
	}
	usual := u.made
	var found []history.Violation
	for _, m := range r.made {
		times, atOnce := 1, 1
		var known []string
		for _, w := range usual {
			if w.owner == m.owner && w.kind == m.kind {
				times, atOnce = max(times, len(w.ids)), max(atOnce, len(w.atOnce))
				known = append(known, w.ids...)
				known = append(known, w.atOnce...)
			}
		}
		stranger := slices.ContainsFunc(m.atOnce, func(id string) bool { return !slices.Contains(known, id) })
		switch {
		case len(m.atOnce) > atOnce && stranger:
			found = append(found, history.Violation{
				Message: fmt.Sprintf("%s has %d external resources of kind %q at once (%s), %d without the disturbance",
					m.owner, len(m.atOnce), m.kind, listed(m.atOnce), atOnce),
				Call: m.atOnceCall, Subjects: []string{"external " + m.kind + " of " + m.owner},
			})
		case len(m.ids) > times+m.lost:
			found = append(found, history.Violation{
				Message: fmt.Sprintf("an external resource of kind %q was created %d times for %s (%s), %d without the disturbance",
					m.kind, len(m.ids), m.owner, listed(m.ids), times),
				Call: m.calls[times+m.lost], Subjects: []string{"external " + m.kind + " of " + m.owner},
			})
		}
	}
	return found
}

// findEarlyEffects is I4: what leads back to an effect is durable before the effect.
func findEarlyEffects(r, _ *index) []history.Violation {
	var found []history.Violation
	for _, m := range r.made {
		l := r.lives[m.uid]
		if l == nil {
			continue
		}
		for i, call := range m.calls {
			id := externalID{m.kind, m.ids[i]}
			switch u := r.before(l, call); {
			case u == nil && r.underWay(call):
			case u == nil:
				found = append(found, history.Violation{Call: call, Subjects: []string{"nobody's external " + m.kind + " of " + m.owner}, Message: fmt.Sprintf(
					"external resource %s was created when the object that it is for, %s, did not exist", id, m.owner)})
			case i == 0 && !r.held(l, u):
				found = append(found, history.Violation{Call: call, Subjects: []string{"early external " + m.kind + " of " + m.owner}, Message: fmt.Sprintf(
					"external resource %s was created before %s had a finalizer: whoever deletes the object now leaves it behind; write the finalizer first",
					id, m.owner)})
			}
		}
	}
	return append(found, r.findLooseChildren()...)
}

// held reports whether an object has a finalizer that the operator will see to: one that it added,
// or that the object was created with.
func (x *index) held(l *life, u *unstructured.Unstructured) bool {
	born := x.run.Changes[l.changes[0]].After
	return slices.ContainsFunc(u.GetFinalizers(), func(f string) bool {
		return x.finalizers[f] || born != nil && slices.Contains(born.GetFinalizers(), f)
	})
}

// underWay reports whether a call belongs to a reconcile that had begun when a DELETE took an object
// with the finalizer on it: nobody can know that in time.
func (x *index) underWay(call int) bool {
	p := x.passOf(call)
	return p != nil && slices.ContainsFunc(x.run.Faults, func(f history.Fault) bool { return f.Kind == "overtaken" && p.First <= f.Call })
}

// findLooseChildren finds objects that the operator creates and that nothing leads back to.
func (x *index) findLooseChildren() []history.Violation {
	var found []history.Violation
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By != operator || c.Before != nil || c.After == nil || history.Housekeeping(c.Group, c.Resource) || len(c.After.GetOwnerReferences()) > 0 {
			continue
		}
		p := x.passOf(c.Call)
		if p == nil {
			continue
		}
		owner := x.owner(history.Resource{Owner: p.Object}, c.Call)
		if owner == nil || names(c.After, owner) {
			continue
		}
		if u := x.before(owner, c.Call); u == nil || x.held(owner, u) {
			continue
		}
		found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf(
			"%s was created with neither an owner reference nor a label that names %s, which has no finalizer: nothing finds it again when that is deleted",
			state.Key(c.Group, c.Resource, c.Namespace, c.Name), owner.key)})
	}
	return found
}

// heldByOthers reports whether an object that the operator created is being deleted and has only finalizers
// of others.
func (x *index) heldByOthers(u *index) bool {
	return slices.ContainsFunc(x.all, func(l *life) bool {
		o := x.last(l)
		return l.mine && o != nil && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 &&
			!slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return x.finalizers[f] || u.finalizers[f] })
	})
}

// names reports whether a label or annotation of child names owner.
func names(child *unstructured.Unstructured, owner *life) bool {
	name := owner.name[strings.LastIndexByte(owner.name, '/')+1:]
	for _, m := range []map[string]string{child.GetLabels(), child.GetAnnotations()} {
		for _, v := range m {
			if strings.Contains(v, name) || strings.Contains(v, owner.uid) {
				return true
			}
		}
	}
	return false
}

// findStuckFinalizers is I6: what is being deleted goes, unless it reports that it waits and an object that
// the operator deletes is held by others.
func findStuckFinalizers(r, u *index) []history.Violation {
	var found []history.Violation
	held := r.heldByOthers(u)
	for _, l := range r.all {
		o := r.last(l)
		if o == nil || o.GetDeletionTimestamp() == nil || held && isTroubled(o) {
			continue
		}
		for _, f := range o.GetFinalizers() {
			if r.finalizers[f] || u.finalizers[f] {
				found = append(found, history.Violation{Call: history.Nobody, Message: fmt.Sprintf(
					"%s is being deleted and never goes: the operator does not remove its finalizer %s", l.key, f)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b history.Violation) int { return cmp.Compare(a.Message, b.Message) })
	return found
}

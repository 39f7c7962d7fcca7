package invariant

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// findGenerationErrors is I7: what was observed is never ahead of what is wanted, and never goes
// back.
func findGenerationErrors(r, _ *index) []history.Violation {
	var found []history.Violation
	for _, l := range r.all {
		for i, change := range l.changes {
			c := &r.run.Changes[change]
			if c.By != operator || c.After == nil || c.After.Object["status"] == nil {
				continue
			}
			tell := func(field string, was, is int64) {
				text := ""
				switch g := c.After.GetGeneration(); {
				case is > g && is != was:
					text = fmt.Sprintf("%s of %s became %d; the generation of %s is %d", field, l.key, is, r.incarnation(l), g)
				case is < was && is != 0 && !r.afterAnother(l, i):
					text = fmt.Sprintf("%s of %s went back from %d to %d", field, l.key, was, is)
				default:
					return
				}
				found = append(found, history.Violation{Message: text, Call: c.Call})
			}
			tell("status.observedGeneration", observedOf(c.Before), observedOf(c.After))
			for _, now := range conditionsOf(c.After) {
				was, _ := conditionOf(c.Before, now.kind)
				tell("observedGeneration of condition "+now.kind, was.observed, now.observed)
			}
		}
	}
	return found
}

// incarnation names an object, and says if there was another one of its kind and name before it.
func (x *index) incarnation(l *life) string {
	if slices.ContainsFunc(x.all, func(o *life) bool { return o.key == l.key && o.changes[0] < l.changes[0] }) {
		return "the object that was created again"
	}
	return "the object"
}

// afterAnother reports whether somebody else wrote the status that the nth change of an object found.
func (x *index) afterAnother(l *life, n int) bool {
	if n == 0 {
		return false
	}
	c := &x.run.Changes[l.changes[n-1]]
	return c.By != operator && c.Before != nil && c.After != nil && !reflect.DeepEqual(c.Before.Object["status"], c.After.Object["status"])
}

const ready = "Ready"

// isReady reports whether an object says that it is ready for what is wanted of it now.
func isReady(u *unstructured.Unstructured) bool {
	c, ok := conditionOf(u, ready)
	if !ok || c.status != "True" {
		return false
	}
	g := u.GetGeneration()
	return c.observed == g || c.observed == 0 && observedOf(u) == g
}

// isUnfinished reports whether an object says, as kstatus has it, that it is not as it should be
// yet. Ready=True means then that what there is works, not that it is what the spec asks for.
func isUnfinished(u *unstructured.Unstructured) bool {
	for _, kind := range []string{"Reconciling", "Stalled"} {
		if c, ok := conditionOf(u, kind); ok && c.status == "True" {
			return true
		}
	}
	return false
}

// claims reports whether a change says that an object is as its spec asks for: it says Ready, and
// is finished, or Ready says itself of which generation and did not say so before.
func claims(c *history.Change) bool {
	if c.After == nil || !isReady(c.After) {
		return false
	}
	if !isUnfinished(c.After) {
		return true
	}
	now, _ := conditionOf(c.After, ready)
	if c.Before == nil || now.observed == 0 {
		return now.observed != 0
	}
	was, _ := conditionOf(c.Before, ready)
	return was.status != now.status || was.observed != now.observed
}

// goal is the external resources of an object when the undisturbed run has come to rest with it.
type goal struct {
	spec   any
	things []history.Resource
}

// goals returns the external resources of objects that are ready, by their key: all that the
// undisturbed run came to.
func (x *index) goals() map[string][]goal {
	all := map[string][]goal{}
	for i, s := range x.run.Steps {
		if !s.Settled.IsZero() {
			x.addGoals(all, s.SettledRev, x.lastView(i))
		}
	}
	if n := len(x.run.Changes); n > 0 {
		x.addGoals(all, x.run.Changes[n-1].Rev, len(x.run.External)-1)
	}
	return all
}

// addGoals adds what a view shows of the objects that were ready at a revision. No view is -1.
func (x *index) addGoals(all map[string][]goal, rev int64, view int) {
	if view < 0 {
		return
	}
	things := map[*life][]history.Resource{}
	for _, t := range x.run.External[view].Resources {
		if l := x.owner(t, x.viewAt[view]); t.Owner != "" && l != nil {
			things[l] = append(things[l], t)
		}
	}
	for l, ts := range things {
		if u := x.stateAt(l, rev); u != nil && isReady(u) {
			all[l.key] = append(all[l.key], goal{u.Object["spec"], ts})
		}
	}
}

// lastView is the last view of a step or of those before it; -1 if there is none.
func (x *index) lastView(step int) int {
	last := -1
	for i, v := range x.run.External {
		if v.Step <= step {
			last = i
		}
	}
	return last
}

// stateAt is an object as it was at a revision; nil if it did not exist.
func (x *index) stateAt(l *life, rev int64) *unstructured.Unstructured {
	var u *unstructured.Unstructured
	for _, i := range l.changes {
		if x.run.Changes[i].Rev <= rev {
			u = x.run.Changes[i].After
		}
	}
	return u
}

// reached reports whether the resources of an object are as its goal wants them.
func (x *index) reached(l *life, g goal, view int, owners map[string]*life) bool {
	for _, want := range g.things {
		ok := false
		for _, t := range x.run.External[view].Resources {
			if t.Kind != want.Kind || t.Owner == "" || want.Ready && !t.Ready || x.owner(t, x.viewAt[view]) != l {
				continue
			}
			wanted := want.State
			if o := owners[want.Owner]; o != nil {
				wanted = strings.ReplaceAll(wanted, o.uid, l.uid)
			}
			ok = ok || t.State == wanted || x.run.HasRandomState(t.Kind)
		}
		if !ok {
			return false
		}
	}
	return true
}

// findUntruths is I8: who writes Ready=True has seen that it is so, and who could is not silent.
func findUntruths(r, u *index) []history.Violation {
	found := findModesty(r, u)
	goals := u.known.goals
	if len(goals) == 0 {
		return found
	}
	for i := range r.run.Changes {
		c := &r.run.Changes[i]
		p := r.passOf(c.Call)
		if c.By != operator || p == nil || !claims(c) || !r.writesStatus(c) {
			continue
		}
		l := r.lives[string(c.After.GetUID())]
		known, reached := false, false
		for _, g := range goals[l.key] {
			if reached || !reflect.DeepEqual(g.spec, c.After.Object["spec"]) {
				continue
			}
			known = true
			for v := range r.run.External {
				reached = reached || r.inForce(v, p, c.Call) && r.reached(l, g, v, u.lives)
			}
		}
		if known && !reached {
			found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf(
				"%s says Ready=True for generation %d, but at no time of that reconcile was it so at the external API: %s",
				l.key, c.After.GetGeneration(), r.resourcesOf(l, c.Call))})
		}
	}
	return found
}

// writesStatus reports whether a change is about status, rather than leaving it as it was.
func (x *index) writesStatus(c *history.Change) bool {
	return x.run.Calls[c.Call].Subresource == "status" || c.Before == nil ||
		!reflect.DeepEqual(c.Before.Object["status"], c.After.Object["status"])
}

// inForce reports whether a view was what existed at some moment from the beginning of a pass until
// a call of it.
func (x *index) inForce(view int, p *history.Pass, call int) bool {
	if x.viewAt[view] > call || x.run.External[view].At.After(x.run.Calls[call].At) {
		return false
	}
	next := view + 1
	return next == len(x.run.External) || x.viewAt[next] >= p.First || !x.run.External[next].At.Before(p.Begin)
}

// resourcesOf tells what existed of an object at a call.
func (x *index) resourcesOf(l *life, call int) string {
	var all []string
	for i, v := range x.run.External {
		if x.viewAt[i] > call || v.At.After(x.run.Calls[call].At) {
			break
		}
		all = nil
		for _, t := range v.Resources {
			if t.Owner == "" || x.owner(t, x.viewAt[i]) != l {
				continue
			}
			state := fmt.Sprintf("%q", t.State)
			if x.run.HasRandomState(t.Kind) { // perhaps a password
				state = "random"
			}
			all = append(all, fmt.Sprintf("%s is %s, ready: %v", idOf(t), state, t.Ready))
		}
	}
	if len(all) == 0 {
		return "there was nothing"
	}
	return strings.Join(all, "; ")
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// findConditionErrors is I9.
func findConditionErrors(r, u *index) []history.Violation {
	var found []history.Violation
	told := map[string]bool{}
	for _, l := range r.all {
		for i, change := range l.changes {
			c := &r.run.Changes[change]
			if c.By != operator || c.After == nil || c.After.Object["status"] == nil || r.afterAnother(l, i) {
				continue
			}
			for _, now := range conditionsOf(c.After) {
				was, ok := conditionOf(c.Before, now.kind)
				if text := wrongIn(l, was, now, ok); text != "" && !told[text] {
					told[text] = true
					found = append(found, history.Violation{Message: text, Call: c.Call})
				}
			}
		}
		found = append(found, r.findFlapping(l, u)...)
	}
	return found
}

// wrongIn tells what is wrong in how a condition was written, if anything; existed says whether
// there was one before.
func wrongIn(l *life, was, now condition, existed bool) string {
	switch {
	case existed && was == now:
		return ""
	case existed && was.status == now.status && was.since != now.since:
		return fmt.Sprintf("lastTransitionTime of condition %s of %s changed, its status did not: it is still %s", now.kind, l.key, now.status)
	case !camelCase.MatchString(now.reason):
		return fmt.Sprintf("condition %s of %s has the reason %q; it has to be one word in CamelCase", now.kind, l.key, now.reason)
	}
	return ""
}

// findFlapping finds conditions that change and change back without a cause. Each fault excuses
// one of them.
func (x *index) findFlapping(l *life, u *index) []history.Violation {
	excused := len(x.run.Faults)
	for _, o := range u.all {
		if x != u && o.key == l.key {
			excused += len(u.flaps(o))
		}
	}
	flaps := x.flaps(l)
	if len(flaps) <= excused {
		return nil
	}
	return flaps[excused:][:1]
}

// spell is a time in which a condition had one status.
type spell struct {
	status string
	change int
	// observed is the generation that the condition spoke of last; 0 if it does not say.
	observed int64
}

// flaps returns each time that a condition of an object went from one status to another and back
// within one step while nothing else changed.
func (x *index) flaps(l *life) []history.Violation {
	spells := map[string][]spell{}
	var found []history.Violation
	for _, i := range l.changes {
		c := &x.run.Changes[i]
		for _, now := range conditionsOf(c.After) {
			all := spells[now.kind]
			if n := len(all); n > 0 && all[n-1].status == now.status {
				all[n-1].observed = now.observed
				continue
			}
			all = append(all, spell{now.status, i, now.observed})
			spells[now.kind] = all
			if len(all) < 3 {
				continue
			}
			first := all[len(all)-3]
			if first.observed != now.observed {
				continue // a user's change came before the first write, and was seen after it
			}
			if first.status == now.status && x.run.Changes[first.change].Step == c.Step && c.By == operator && !x.moved(l, first.change, i) {
				found = append(found, history.Violation{Call: c.Call, Message: fmt.Sprintf(
					"condition %s of %s went from %s to %s and back, and nothing else had changed",
					now.kind, l.key, now.status, all[len(all)-2].status)})
			}
		}
	}
	return found
}

// moved reports whether between two changes something happened but the operator's writes to one object.
func (x *index) moved(l *life, from, to int) bool {
	for i := from + 1; i < to; i++ {
		c := &x.run.Changes[i]
		if c.By != operator || !history.Housekeeping(c.Group, c.Resource) && string(c.Object().GetUID()) != l.uid {
			return true
		}
	}
	first, last := x.at[from], x.at[to]
	begin, end := x.run.Changes[from].At, x.run.Changes[to].At
	for i, v := range x.run.External {
		mine := v.Call != history.Nobody && v.Call > first && v.Call < last
		others := i > 0 && v.Call == history.Nobody && x.viewAt[i] <= last && within(v.At, begin, end) &&
			(i+1 == len(x.viewAt) || x.viewAt[i+1] > first)
		if mine || others {
			return true
		}
	}
	for _, f := range x.run.Faults {
		if f.Call >= first && f.Call <= last || f.Call == history.Nobody && within(f.Time, begin, end) {
			return true
		}
	}
	return false
}

func within(t, from, to time.Time) bool { return !t.Before(from) && !t.After(to) }

package invariant

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

const operator = "operator"

// index finds things in a run.
type index struct {
	run *history.Run
	// lives are the objects by UID, all of them in order of birth; named finds them by
	// "namespace/name", of whatever kind.
	lives map[string]*life
	all   []*life
	named map[string][]*life
	// at is, for each change, how many calls had been let through when it came: for the
	// operator's the index of its call.
	at []int
	// viewAt is the same for views of the external API.
	viewAt []int
	// finalizers are those that the operator adds to objects.
	finalizers map[string]bool
	// made is the external resources that were made.
	made []*making
	// known is what other runs are compared with; nil unless this is the undisturbed run.
	known *known
}

// known is what a run came to and what it was like.
type known struct {
	goals         map[string][]goal
	kinds         map[string]bool
	removed       map[string]bool // marks that the operator removed: "databases label x"
	adopted       map[externalID]bool
	readyMessages map[string]map[string]bool // the messages of objects in order, by kind
	kstatus       map[string]bool            // kinds that say whether they get there by themselves
	reported      map[string]bool            // kinds whose objects have conditions
	broods        map[string]int             // how many equal children an owner has at once, by owner and kind
}

// reference returns the index of an undisturbed run. It is only read from then on.
func reference(u *history.Run) *index {
	x := newIndex(u)
	x.known = &known{goals: x.goals(), kinds: x.ownKinds(), removed: x.removedMarks(), adopted: x.adopted(), readyMessages: x.readyMessages(), kstatus: x.kstatusKinds(), reported: x.reportedKinds(), broods: x.usualBroods()}
	return x
}

// life is one incarnation of an object.
type life struct {
	key, group, resource, name, uid string
	by                              string
	changes                         []int
	gone                            bool
	// mine are finalizers and owners that the operator put on it at any time.
	mine bool
}

func newIndex(r *history.Run) *index {
	x := &index{run: r, lives: map[string]*life{}, named: map[string][]*life{}, finalizers: map[string]bool{}}
	x.at = make([]int, len(r.Changes))
	calls, next := 0, 0
	for i := range r.Changes {
		c := &r.Changes[i]
		for ; next < len(r.Calls) && (r.Calls[next].Last == 0 || r.Calls[next].Last < c.Rev); next++ {
			if r.Calls[next].Last != 0 {
				calls = next + 1
			}
		}
		x.at[i] = x.stepped(calls, c.Step)
		if c.By == operator && c.Call != history.Nobody {
			x.at[i] = c.Call
		}
		x.live(i, c)
	}
	before := 0
	for _, v := range r.External {
		if v.Call != history.Nobody {
			before = v.Call
		} else {
			before = x.stepped(before, v.Step)
		}
		x.viewAt = append(x.viewAt, before)
	}
	x.made = x.makings()
	return x
}

// stepped returns the later of a number of calls and that at which a step began.
func (x *index) stepped(calls, step int) int {
	if step > 0 && step < len(x.run.Steps) {
		return max(calls, x.run.Steps[step].Call)
	}
	return calls
}

// live notes a change in the life of its object.
func (x *index) live(i int, c *history.Change) {
	uid := string(c.Object().GetUID())
	l := x.lives[uid]
	if l == nil {
		full := nameOf(c.Namespace, c.Name)
		l = &life{key: state.Key(c.Group, c.Resource, c.Namespace, c.Name), group: c.Group, resource: c.Resource, name: full, uid: uid, by: c.By}
		x.lives[uid] = l
		x.all = append(x.all, l)
		x.named[full] = append(x.named[full], l)
	}
	l.changes = append(l.changes, i)
	l.gone = c.After == nil
	if c.By != operator || c.After == nil {
		return
	}
	if c.Before == nil {
		l.mine = true
	}
	for _, f := range c.After.GetFinalizers() {
		collectors := f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents // of a delete
		if !collectors && (c.Before == nil || !slices.Contains(c.Before.GetFinalizers(), f)) {
			x.finalizers[f] = true
			l.mine = true
		}
	}
	if n := len(ownersOf(c.After)); n > 0 && (c.Before == nil || n > len(ownersOf(c.Before))) {
		l.mine = true
	}
}

func ownersOf(u *unstructured.Unstructured) []any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	return owners
}

func nameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// last returns the last state of an object, nil if it is gone.
func (x *index) last(l *life) *unstructured.Unstructured {
	return x.run.Changes[l.changes[len(l.changes)-1]].After
}

// before returns an object as it was when a call was let through; nil if there was none.
func (x *index) before(l *life, call int) *unstructured.Unstructured {
	var u *unstructured.Unstructured
	for _, i := range l.changes {
		if x.at[i] >= call && x.run.Changes[i].By == operator || x.at[i] > call {
			break
		}
		u = x.run.Changes[i].After
	}
	return u
}

// owner finds the object that a resource was made for, by UID or namespace/name, as of a number of
// calls. It is nil if there never was one.
func (x *index) owner(t history.Resource, call int) *life {
	if l := x.lives[t.Owner]; l != nil {
		return l
	}
	var found *life
	for _, l := range x.named[t.Owner] {
		if x.at[l.changes[0]] > call {
			continue
		}
		if found == nil || l.by != operator || found.by == operator {
			found = l
		}
	}
	return found
}

// externalID identifies an external resource.
type externalID struct{ kind, id string }

func idOf(t history.Resource) externalID { return externalID{t.Kind, t.ID} }

func (id externalID) String() string { return strings.TrimSpace(id.kind + " " + id.id) }

// viewed returns the resources of a view by their identity; of the view before the first, none.
func (x *index) viewed(i int) map[externalID]history.Resource {
	m := map[externalID]history.Resource{}
	if i >= 0 {
		for _, t := range x.run.External[i].Resources {
			m[idOf(t)] = t
		}
	}
	return m
}

// passOf returns the pass that a call was made in, nil if none.
func (x *index) passOf(call int) *history.Pass {
	if call < 0 || call >= len(x.run.Calls) {
		return nil
	}
	if p := x.run.Calls[call].Pass; p >= 0 && p < len(x.run.Passes) {
		return &x.run.Passes[p]
	}
	return nil
}

// condition is one of an object's.
type condition struct {
	kind, status, reason, message, since string
	observed                             int64 // 0: not said
}

func conditionsOf(u *unstructured.Unstructured) []condition {
	if u == nil {
		return nil
	}
	status, _ := u.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	var all []condition
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		c := condition{observed: whole(m["observedGeneration"])}
		c.kind, _ = m["type"].(string)
		c.status, _ = m["status"].(string)
		c.reason, _ = m["reason"].(string)
		c.message, _ = m["message"].(string)
		c.since, _ = m["lastTransitionTime"].(string)
		all = append(all, c)
	}
	return all
}

func conditionOf(u *unstructured.Unstructured, kind string) (condition, bool) {
	for _, c := range conditionsOf(u) {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{}, false
}

// observedOf is status.observedGeneration, 0 if it is not said.
func observedOf(u *unstructured.Unstructured) int64 {
	if u == nil {
		return 0
	}
	status, _ := u.Object["status"].(map[string]any)
	return whole(status["observedGeneration"])
}

func whole(v any) int64 {
	n, _ := v.(int64)
	return n
}

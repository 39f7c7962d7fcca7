package fault

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// spare lists, of the races that the scenario does not name itself, those that delete what its other objects
// depend on, and says so in a note: what an operator does without such an object is usually right.
func (e *exploration) spare() map[int]bool {
	if e.scenario.Races != nil {
		return nil
	}
	spared := map[int]bool{}
	var names []string
	for n, race := range e.scenario.raceSteps() {
		if race.victim == nil || !e.isDependency(race.victim) {
			continue
		}
		spared[n] = true
		if name := race.victim.GetName(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		e.report.Notes = append(e.report.Notes, fmt.Sprintf(
			"no race deletes %s, which objects that are created later may depend on; name Delete and Recreate in Races if the operator is to cope with that", strings.Join(names, ", ")))
	}
	return spared
}

// isDependency reports whether a step creates an object before another one, and the operator works on the
// other one alone: it neither writes the first nor reconciles it.
func (e *exploration) isDependency(obj client.Object) bool {
	found := false
	for _, step := range e.scenario.Steps {
		switch {
		case step.object == nil:
		case isSameObject(step.object, obj):
			if e.worksOn(step.object) {
				return false
			}
			found = true
		case found && e.worksOn(step.object):
			return true
		}
	}
	return false
}

// isSameObject reports whether a and b have the same kind and name.
func isSameObject(a, b client.Object) bool {
	return fmt.Sprintf("%T", a) == fmt.Sprintf("%T", b) && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace() &&
		a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}

// worksOn reports whether the operator writes an object that a step creates, or has reconciles of its name.
func (e *exploration) worksOn(obj client.Object) bool {
	r := e.reference.Run
	uids, names := map[string]bool{}, map[string]bool{}
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.By == history.User && c.Before == nil && c.After != nil && isThat(c.After, obj) {
			uids[string(c.After.GetUID())] = true
			names[strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")] = true
		}
		if c.By == history.Operator && c.After != nil && uids[string(c.After.GetUID())] {
			return true
		}
	}
	return slices.ContainsFunc(r.Passes, func(p history.Pass) bool { return names[p.Object] })
}

// isThat reports whether u may be what a step's object became.
func isThat(u *unstructured.Unstructured, obj client.Object) bool {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" { // of a Go type, whose name is that of the kind
		name := fmt.Sprintf("%T", obj)
		kind = name[strings.LastIndexByte(name, '.')+1:]
	}
	return u.GetName() == obj.GetName() && u.GetKind() == kind && (obj.GetNamespace() == "" || obj.GetNamespace() == u.GetNamespace())
}

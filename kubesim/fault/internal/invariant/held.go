package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// findUntold is I20: while code of the author's does not return, whatever is not as it should be says
// so of its present spec, be it held up itself or waiting for what is. Whoever shares nothing with it
// but the process goes on.
func findUntold(r, u *index) []history.Violation {
	h := r.run.Held
	if h == nil || h.Step >= len(u.run.Steps) {
		return nil
	}
	wanted := u.run.Steps[h.Step].State
	var found []history.Violation
	told := false
	for _, l := range r.all {
		o := r.stateAt(l, h.Rev)
		if o == nil || !u.known.told[l.group+"/"+l.resource] {
			continue
		}
		says := isTroubled(o)
		told = told || says
		if h.State.Objects[l.key] != wanted.Objects[l.key] && !says {
			found = append(found, history.Violation{Call: h.Call - 1, Message: fmt.Sprintf(
				"%s is not as it should be while code of the author's does not return, and its status does not say so; leave such a call behind after its deadline", l.key)})
		}
	}
	if len(found) == 0 && !told && len(u.known.told) > 0 && !slices.Equal(h.State.Resources, wanted.Resources) {
		found = append(found, history.Violation{Call: h.Call - 1, Message: "the external resources are not as they should be while code of the author's does not return, and no object says so; leave such a call behind after its deadline"})
	}
	return found
}

// isTroubled reports whether an object says of its present spec that it is not as it should be.
func isTroubled(o *unstructured.Unstructured) bool {
	conditions := conditionsOf(o)
	if seen := observedOf(o); len(conditions) == 0 || seen != 0 && seen < o.GetGeneration() {
		return false
	}
	_, failed := isTrue(o, failedType)
	return failed || !isReady(o) || isUnfinished(o)
}

// toldKinds are the kinds whose objects have conditions.
func (x *index) toldKinds() map[string]bool {
	kinds := map[string]bool{}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By == operator && len(conditionsOf(c.After)) > 0 && !history.Housekeeping(c.Group, c.Resource) {
			kinds[c.Group+"/"+c.Resource] = true
		}
	}
	return kinds
}

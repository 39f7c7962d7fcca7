package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// findUnreported is I20: while a driver's call does not return, each object that is not as it should be
// reports so for its current spec, whether the call is its own or one that it waits for. Objects that
// share only the process with it go on.
func findUnreported(r, u *index) []history.Violation {
	h := r.run.Held
	if h == nil || h.Step >= len(u.run.Steps) {
		return nil
	}
	wanted := u.run.Steps[h.Step].State
	var found []history.Violation
	reported := false
	for _, l := range r.all {
		o := r.stateAt(l, h.Rev)
		if o == nil || !u.known.reported[l.group+"/"+l.resource] {
			continue
		}
		says := isTroubled(o)
		reported = reported || says
		if h.State.Objects[l.key] != wanted.Objects[l.key] && !says {
			found = append(found, history.Violation{Call: h.Call - 1, Message: fmt.Sprintf(
				"%s is not as it should be while a call of the driver does not return, and its status does not say so; abandon such a call after its deadline", l.key)})
		}
	}
	if len(found) > 0 || reported || len(u.known.reported) == 0 {
		return found
	}
	wrong := u.unlike(h.State, wanted, r)
	if !slices.Equal(h.State.Resources, wanted.Resources) {
		wrong = "the external resources are"
	}
	if wrong != "" {
		found = append(found, history.Violation{Call: h.Call - 1, Message: wrong + " not in the expected state while a call of the driver does not return, and no object says so; abandon such a call after its deadline"})
	}
	return found
}

// unlike names an object that reports nothing itself, that the operator created in one of the runs, and
// that is not as in another state.
func (x *index) unlike(is, wanted history.State, other *index) string {
	var keys []string
	for _, l := range slices.Concat(x.all, other.all) {
		if !l.mine || x.known.reported[l.group+"/"+l.resource] || history.Housekeeping(l.group, l.resource) {
			continue
		}
		if is.Objects[l.key] != wanted.Objects[l.key] {
			keys = append(keys, l.key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return slices.Min(keys) + " is"
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

// reportedKinds are the kinds whose objects have conditions.
func (x *index) reportedKinds() map[string]bool {
	kinds := map[string]bool{}
	for i := range x.run.Changes {
		c := &x.run.Changes[i]
		if c.By == operator && c.WroteConditions() && !history.Housekeeping(c.Group, c.Resource) {
			kinds[c.Group+"/"+c.Resource] = true
		}
	}
	return kinds
}

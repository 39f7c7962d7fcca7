package disturb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Status is what an operator tells, and anybody may write it who may write the object's status: a
// script that waits, a restore, an attacker. Whoever believes it does nothing, or the wrong thing.

// The ways to forge a status.
const (
	forgeReady = iota
	forgeNotReady
	forgeNothing // the status is removed
	Forgeries
)

// Status is an object whose conditions the operator writes, and which words its status has besides.
type Status struct {
	call        history.Call // that names it
	condition   string       // that the operator writes: Ready, or else the first of its own
	state, text bool         // status.state and status.message
}

// Statuses lists the objects of a run whose status has conditions of the operator's.
func Statuses(r *history.Run) (all []Status) {
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.By != history.Operator || h.After == nil || history.Housekeeping(h.Group, h.Resource) {
			continue
		}
		if !h.WroteConditions() {
			continue
		}
		at := slices.IndexFunc(all, func(t Status) bool {
			c := t.call
			return c.Group == h.Group && c.Resource == h.Resource && c.Namespace == h.Namespace && c.Name == h.Name
		})
		if at < 0 {
			at = len(all)
			all = append(all, Status{call: history.Call{Group: h.Group, Resource: h.Resource, Namespace: h.Namespace, Name: h.Name}})
		}
		all[at].condition = forgedCondition(all[at].condition, h)
		state, _, _ := unstructured.NestedString(h.After.Object, "status", "state")
		text, _, _ := unstructured.NestedString(h.After.Object, "status", "message")
		all[at].state, all[at].text = all[at].state || state != "", all[at].text || text != ""
	}
	return all
}

// ready is the condition that is forged where the operator writes it.
const ready = "Ready"

// forgedCondition is the condition to forge, after a change of the operator's: Ready if the operator writes it,
// or else the first that it wrote. A condition of another type is not the operator's to correct.
func forgedCondition(before string, h *history.Change) string {
	written := h.WrittenConditions()
	switch {
	case before == ready || slices.Contains(written, ready):
		return ready
	case before == "" && len(written) > 0:
		return written[0]
	}
	return before
}

// forge lets a user write a status, as a schedule has it.
func (o *Others) forge(c *history.Call) {
	d, ok := o.Schedule.Find(c.Index, schedule.Forged)
	if !ok {
		return
	}
	all := Statuses(o.Like)
	n, err := strconv.Atoi(d.Arg)
	if err != nil || n < 0 || n >= len(all)*Forgeries {
		o.Broken = fmt.Errorf("%s names none of the %d ways to forge a status", d, len(all)*Forgeries)
		return
	}
	of, how := all[n/Forgeries], n%Forgeries
	what := [...]string{"writes " + of.condition + "=True into %s", "writes " + of.condition + "=False into %s", "removes the status of %s"}[how]
	o.record.Disturbed(d.Kind, c.Index, "a user "+fmt.Sprintf(what, of.call.Name))
	err = o.box.Do(history.User, func(ctx context.Context, w *sandbox.World) error { return o.writeStatus(ctx, w, of, how) })
	if apierrors.IsNotFound(err) {
		o.Void = true
	} else if err != nil {
		o.Broken = fmt.Errorf("forge the status of %s: %w", of.call.Name, err)
	}
}

// writeStatus writes what a user says an object's status is.
func (o *Others) writeStatus(ctx context.Context, w *sandbox.World, of Status, how int) error {
	u, err := o.read(ctx, w, &of.call)
	if err != nil {
		return err
	}
	var status any
	if how != forgeNothing {
		status = of.say(u, how == forgeReady)
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return w.Client.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody-else"), lenient())
}

// say is a status with the condition as a user wants it. The others stay.
func (t Status) say(u *unstructured.Unstructured, isReady bool) map[string]any {
	word, state := metav1.ConditionFalse, "Failed"
	if isReady {
		word, state = metav1.ConditionTrue, "Succeeded"
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == t.condition
	})
	conditions = append(conditions, map[string]any{
		"type": t.condition, "status": string(word), "reason": "SomebodySaysSo", "message": "somebody says so",
		"observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	status := map[string]any{"conditions": conditions}
	if t.state {
		status["state"] = state
	}
	if t.text {
		status["message"] = "somebody says so"
	}
	return status
}

package fault

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
)

// Status is what an operator tells, and anybody may write it who may write the object's status: a
// script that waits, a restore, an attacker. Whoever believes it does nothing, or the wrong thing.

// The ways to forge a status.
const (
	forgeReady = iota
	forgeNotReady
	forgeNothing // the status is removed
	forgeries
)

// told is an object whose conditions the operator writes, and which words its status has besides.
type told struct {
	call        history.Call // that names it
	state, text bool         // status.state and status.message
}

// toldOf lists the objects of a run whose status has conditions of the operator's.
func toldOf(r *history.Run) (all []told) {
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.By != operatorName || h.After == nil || history.Housekeeping(h.Group, h.Resource) {
			continue
		}
		if conditions, _, _ := unstructured.NestedSlice(h.After.Object, "status", "conditions"); len(conditions) == 0 {
			continue
		}
		at := slices.IndexFunc(all, func(t told) bool {
			c := t.call
			return c.Group == h.Group && c.Resource == h.Resource && c.Namespace == h.Namespace && c.Name == h.Name
		})
		if at < 0 {
			at = len(all)
			all = append(all, told{call: history.Call{Group: h.Group, Resource: h.Resource, Namespace: h.Namespace, Name: h.Name}})
		}
		state, _, _ := unstructured.NestedString(h.After.Object, "status", "state")
		text, _, _ := unstructured.NestedString(h.After.Object, "status", "message")
		all[at].state, all[at].text = all[at].state || state != "", all[at].text || text != ""
	}
	return all
}

// forged lets a user write the status of an object just before each write of the operator and each
// beginning of a reconcile.
func (p *plan) forged() []job {
	r := p.reference.run
	begins := map[int]bool{}
	for _, pass := range r.Passes {
		begins[pass.First] = true
	}
	var jobs []job
	moment := 0
	for _, c := range r.Calls {
		step := stepOf(r, c.Index)
		if step == 0 || history.Housekeeping(c.Group, c.Resource) || !c.Write && !begins[c.Index] {
			continue
		}
		moment++
		for n := range len(toldOf(r)) * forgeries {
			if !p.skip(Alternating, moment%forgeries != n%forgeries) {
				jobs = append(jobs, job{schedule: schedule{{kind: forged, at: c.Index, arg: strconv.Itoa(n)}}, last: step})
			}
		}
	}
	return jobs
}

// forge lets a user write a status, as a schedule has it.
func (p *play) forge(c *history.Call) {
	d, ok := p.schedule.find(c.Index, forged)
	if !ok {
		return
	}
	all := toldOf(p.explorer.reference.run)
	n, err := strconv.Atoi(d.arg)
	if err != nil || n < 0 || n >= len(all)*forgeries {
		p.broken = fmt.Errorf("%s names none of the %d ways to forge a status", d, len(all)*forgeries)
		return
	}
	of, how := all[n/forgeries], n%forgeries
	what := [...]string{"says that %s is Ready", "says that %s is not Ready", "removes the status of %s"}[how]
	p.noteFault(d, c.Index, "a user "+fmt.Sprintf(what, of.call.Name))
	err = p.do(userName, func(ctx context.Context, w *World) error { return p.writeStatus(ctx, w, of, how) })
	if apierrors.IsNotFound(err) {
		p.void = true
	} else if err != nil {
		p.broken = fmt.Errorf("forge the status of %s: %w", of.call.Name, err)
	}
}

// writeStatus writes what a user says an object's status is.
func (p *play) writeStatus(ctx context.Context, w *World, of told, how int) error {
	u, err := p.objectOf(&of.call)
	if err != nil {
		return err
	}
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
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
	return w.Client.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody-else"))
}

// say is a status with Ready as a user wants it. The other conditions stay.
func (t told) say(u *unstructured.Unstructured, isReady bool) map[string]any {
	word, state := metav1.ConditionFalse, "Failed"
	if isReady {
		word, state = metav1.ConditionTrue, "Succeeded"
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Ready"
	})
	conditions = append(conditions, map[string]any{
		"type": "Ready", "status": string(word), "reason": "SomebodySaysSo", "message": "somebody says so",
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

// remind starts the operator anew, so that it looks at everything: what nobody is told of, and what
// is held up by code that does not return, may stay wrong until then, but no longer.
func (p *play) remind(wanted []history.State) error {
	right := func(w history.State) bool { return sameState(p.present(), w) }
	if !slices.ContainsFunc(p.schedule, func(d disturbance) bool { return d.kind == forged || d.kind == hangs }) || slices.ContainsFunc(wanted, right) {
		return nil
	}
	p.noteHeld()
	if err := p.stopAll(); err != nil {
		return err
	}
	p.reminded = len(p.run.Processes)
	if err := p.startAll(); err != nil {
		return err
	}
	p.lastChange = time.Now()
	if err := p.settle(); err != nil {
		return err
	}
	return p.converge(wanted)
}

package model

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
)

// Hold is a step that an operator does not take before somebody agrees.
type Hold struct {
	Step Step `json:"step"`
	// Text is what the operator says about it.
	Text string `json:"text"`
	// Approval is the change that agrees. It is nil if that is not possible on the object; then Remedy says where it is.
	Approval *Change `json:"approval,omitempty"`
	Remedy   string  `json:"remedy,omitempty"`
}

// Step is a kind of step that can be held.
type Step string

// The steps that operators of trimtab hold.
const (
	StepPrune       Step = "prune"        // most dependents are no longer rendered, and would be deleted
	StepRecreate    Step = "recreate"     // the external resource would be deleted and created again
	StepEndpoint    Step = "endpoint"     // the external resource would be left at another endpoint, and a new one created
	StepDeleteHooks Step = "delete-hooks" // the deletion would go on without its hooks
	StepLeftBehind  Step = "left-behind"  // dependents would be left in another cluster
	StepDataLoss    Step = "data-loss"    // a dependent that holds data would be deleted and created again
)

// Holding is an object with the steps that are held.
type Holding struct {
	Object Ref      `json:"object"`
	Held   []Hold   `json:"held"`
	Unseen []string `json:"unseen,omitempty"`
}

// asked matches how an operator asks for an annotation: set pages.example.org/allow-prune: "3" on the component.
var asked = regexp.MustCompile(`\bset ([a-z0-9][-a-z0-9.]*/(allow-prune|skip-delete-hooks|left-behind|accept-data-loss)): "?([^"\s;]+)"?`)

// granted matches how the operator of an external resource asks for one.
var granted = regexp.MustCompile(`set annotation (` + regexp.QuoteMeta(api.AnnotationAccess) + `|` + regexp.QuoteMeta(api.AnnotationEndpoint) + `) to "([^"]+)"`)

// Held returns what the status of an object says is held. The operator need not run.
func (c *Cluster) Held(ctx context.Context, r Ref) (Holding, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Holding{}, err
	}
	if c.natureOf(ctx, u) == natureNone {
		return Holding{}, fmt.Errorf("nothing is ever held for objects of kind %s; approve is for external resources and components of trimtab's operators", r.Kind)
	}
	status := statusOf(u)
	h := Holding{Object: r, Held: []Hold{}}
	for _, cond := range append(status.Conditions, metav1.Condition{Message: status.Message}) {
		for _, hold := range c.holdsIn(ctx, u, cond.Reason, flatten(cond.Message)) {
			if !h.has(hold) {
				h.Held = append(h.Held, hold)
			}
		}
	}
	h.Unseen = c.Unseen()
	return h, nil
}

// has reports whether a step was said to be held before, perhaps in another condition.
func (h Holding) has(hold Hold) bool {
	return slices.ContainsFunc(h.Held, func(known Hold) bool {
		return known.Step == hold.Step && (hold.Step != StepDataLoss || known.Text == hold.Text)
	})
}

// holdsIn returns what a message asks to be agreed to.
func (c *Cluster) holdsIn(ctx context.Context, u *unstructured.Unstructured, reason, text string) (all []Hold) {
	for _, m := range asked.FindAllStringSubmatch(text, -1) {
		key, value := m[1], m[3]
		switch m[2] {
		case "allow-prune":
			all = append(all, c.pruneHold(ctx, u, key, text))
		case "skip-delete-hooks":
			if !u.GetDeletionTimestamp().IsZero() {
				all = append(all, c.holdOf(u, StepDeleteHooks, text, key, value, "the deletion goes on, and the delete hooks that have not run do not run any more"))
			}
		case "left-behind":
			all = append(all, c.holdOf(u, StepLeftBehind, text, key, value, "the dependents in cluster "+value+" stay there and are forgotten; new ones are created in the other cluster"))
		case "accept-data-loss":
			all = append(all, Hold{Step: StepDataLoss, Text: text, Remedy: fmt.Sprintf("it is approved in the manifest of the dependent: add the annotation %s: %q there", key, "true")})
		}
	}
	switch reason {
	case "RecreateNotPermitted":
		hold := Hold{Step: StepRecreate, Text: text, Remedy: "it cannot be approved on the object; the message says who can allow it"}
		if m := granted.FindStringSubmatch(text); m != nil {
			hold = c.holdOf(u, StepRecreate, text, m[1], m[2], fmt.Sprintf("external resource %q is deleted and created again; what it holds is lost", externalID(u)),
				"the permission stays until it is taken back, also for later changes")
		}
		all = append(all, hold)
	case "EndpointChanged":
		if m := granted.FindStringSubmatch(text); m != nil {
			all = append(all, c.holdOf(u, StepEndpoint, text, m[1], m[2], fmt.Sprintf("external resource %q stays at the former endpoint, and a new one is created at %s", externalID(u), m[2])))
		}
	}
	return all
}

// holdOf returns a step that an annotation approves. If the status is not about the present spec, it is not known what would be
// approved.
func (c *Cluster) holdOf(u *unstructured.Unstructured, step Step, text, key, value string, effects ...string) Hold {
	observed := statusOf(u).ObservedGeneration
	if u.GetDeletionTimestamp().IsZero() && observed != u.GetGeneration() {
		return Hold{Step: step, Text: text, Remedy: fmt.Sprintf("the status is of generation %d and the spec of generation %d: wait until the operator has looked at it", observed, u.GetGeneration())}
	}
	change := c.permitting(u, key, value)
	if change.Annotation == "" {
		return Hold{Step: step, Text: text, Remedy: "it is approved already; the operator has not acted on it yet"}
	}
	change.Effects = append(change.Effects, effects...)
	return Hold{Step: step, Text: text, Approval: &change}
}

// pruneHold is for the present generation, which is what the annotation names, and lists what is kept.
func (c *Cluster) pruneHold(ctx context.Context, u *unstructured.Unstructured, key, text string) Hold {
	hold := c.holdOf(u, StepPrune, text, key, strconv.FormatInt(u.GetGeneration(), 10), "what it keeps is deleted; a later generation is not approved")
	if hold.Approval == nil {
		return hold
	}
	for _, item := range c.items(ctx, u) {
		if item.Kept {
			hold.Approval.Gone = append(hold.Approval.Gone, item.Kind+"/"+item.Name)
		}
	}
	if blocked := condition(statusOf(u).Conditions, api.ConditionPruneBlocked); blocked == nil || blocked.Status != metav1.ConditionTrue {
		return Hold{Step: StepPrune, Text: text, Remedy: "condition " + api.ConditionPruneBlocked + " is not True any more; look again"}
	}
	return hold
}

// Steps returns the steps that are held and can be approved on the object.
func (h Holding) Steps() (steps []string) {
	for _, hold := range h.Held {
		if hold.Approval != nil {
			steps = append(steps, string(hold.Step))
		}
	}
	return steps
}

// Change is the approval. Its effects begin with what is held.
func (h Hold) Change() Change {
	change := *h.Approval
	change.Effects = append([]string{"held: " + h.Text}, change.Effects...)
	return change
}

// Says returns what is held in one line.
func (h Hold) Says() string { return strings.TrimSpace(string(h.Step) + ": " + h.Text) }

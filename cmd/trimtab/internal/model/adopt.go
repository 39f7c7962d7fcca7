package model

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
)

// Adopt returns the change by which an object takes over what exists already: an external resource, of which from is the UID of
// the present owner, as its mark gives it, or empty if no other object's mark is on it; or, for a component that was restored
// from a backup, the dependents of the component that had the UID from.
func (c *Cluster) Adopt(ctx context.Context, r Ref, from string) (Change, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Change{}, err
	}
	if !u.GetDeletionTimestamp().IsZero() {
		return Change{}, fmt.Errorf("%s is being deleted, so it adopts nothing; create it again when it is gone", r)
	}
	if strings.ContainsAny(from, " \t,:") {
		return Change{}, fmt.Errorf("--from: %q is no UID; the status of the object and the mark of the external resource have it", from)
	}
	if from == string(u.GetUID()) {
		return Change{}, fmt.Errorf("--from: %s is the UID of %s itself; give that of the present owner", from, r)
	}
	var change Change
	switch c.natureOf(ctx, u) {
	case natureComponent:
		change, err = c.adoptDependents(ctx, u, from)
	case natureExternal, natureUnknown:
		change, err = c.adoptExternal(u, from)
	case natureNone:
		err = fmt.Errorf("objects of kind %s stand for nothing that could be adopted; adopt is for external resources and components of trimtab's operators", r.Kind)
	}
	if err != nil {
		return Change{}, err
	}
	change.Unseen = c.Unseen()
	return change, nil
}

// adoptExternal: what the operator says about who owns the resource decides which value adopts it.
func (c *Cluster) adoptExternal(u *unstructured.Unstructured, from string) (Change, error) {
	r, status := refOf(u), statusOf(u)
	said := ""
	ready, failed := condition(status.Conditions, api.ConditionReady), condition(status.Conditions, api.ConditionFailed)
	if failed != nil && failed.Status == metav1.ConditionTrue && failed.Reason == "NotOurs" {
		said = failed.Message
	} else if ready != nil && ready.Status == metav1.ConditionTrue && status.External != nil {
		return Change{Object: r, Effects: []string{fmt.Sprintf("it has the external resource %q, so there is nothing to adopt", status.External.ID)}}, nil
	}
	if strings.Contains(said, "the operator can allow annotation "+api.AnnotationAdoption) {
		return Change{}, fmt.Errorf("%s may not adopt it: %s", r, flatten(said))
	}
	owner := ""
	if _, rest, is := strings.Cut(said, `"`+api.AdoptionFrom); is {
		owner, _, _ = strings.Cut(rest, `"`)
	}
	switch {
	case owner != "" && from == "":
		return Change{}, fmt.Errorf("%s can only adopt it from its present owner: %s; if that object is gone for good, use --from %s", r, flatten(said), owner)
	case owner != "" && from != owner:
		return Change{}, fmt.Errorf("--from: the external resource belongs to the object with UID %s, not to %s", owner, from)
	}
	value, effect := api.AdoptionAlways, "an external resource that has the name which the spec yields is adopted, unless another object's mark is on it"
	if from != "" {
		value, effect = api.AdoptionFrom+from, "the external resource whose mark names the object with UID "+from+" is adopted; that object has it no more"
	}
	change := c.permitting(u, api.AnnotationAdoption, value)
	if change.Annotation == "" {
		return change, nil
	}
	change.Effects = append(change.Effects, effect, "what differs from the spec is changed, and it is deleted with the object, unless annotation "+api.AnnotationDeletion+" is orphan")
	if said != "" {
		change.Effects = append(change.Effects, "now: "+flatten(said))
	}
	if paused := u.GetAnnotations()[api.AnnotationPaused]; paused != "" {
		change.Effects = append(change.Effects, fmt.Sprintf("it is paused (%s): nothing is adopted before it is resumed", paused))
	}
	return change, nil
}

// adoptDependents: a component that was restored says which one it was.
func (c *Cluster) adoptDependents(ctx context.Context, u *unstructured.Unstructured, from string) (Change, error) {
	r := refOf(u)
	if from == "" {
		return Change{}, fmt.Errorf("%s is a component: whether it takes over an object that exists is said by adoption-policy in that object's manifest; "+
			"if the component was restored from a backup, use --from with the UID that it had", r)
	}
	name := c.operatorName(ctx, u)
	if name == "" {
		return Change{}, fmt.Errorf("%s does not show the name of its operator, because it has neither dependents that can be read nor a finalizer; "+
			"set the annotation <operator>/restored-from: %s yourself", r, from)
	}
	change := c.permitting(u, name+"/restored-from", from)
	if change.Annotation != "" {
		change.Effects = append(change.Effects, "dependents that belong to the component of this name with UID "+from+" become its own",
			"remove the annotation when the component is ready")
	}
	return change, nil
}

// flatten returns a text in one line.
func flatten(text string) string { return strings.Join(strings.Fields(text), " ") }

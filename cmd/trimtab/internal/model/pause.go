package model

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
)

// Pause returns the change by which the external resource of an object is left as it is, until a time in RFC 3339, or until the
// object is resumed if that is empty.
func (c *Cluster) Pause(ctx context.Context, r Ref, until string) (Change, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Change{}, err
	}
	nature := c.natureOf(ctx, u)
	switch nature {
	case natureNone, natureComponent:
		return Change{}, fmt.Errorf("objects of kind %s have no external resource that could be paused; for a component, set its annotation <operator>/mode: suspended", r.Kind)
	case natureExternal, natureUnknown:
	}
	if !u.GetDeletionTimestamp().IsZero() {
		return Change{Object: r, Effects: []string{"it is being deleted, and a pause does not stop that"}, Unseen: c.Unseen()}, nil
	}
	value, end := until, "until "+until
	if until == "" {
		value, end = "true", "until it is resumed"
	}
	change := c.inAnyVersion(u, api.AnnotationPaused, value)
	if change.Annotation != "" {
		change.Effects = append(change.Effects, "the external resource is observed and reported, and not changed, "+end, "a deletion of the object goes on")
		if nature == natureUnknown {
			change.Effects = append(change.Effects, "nothing, if objects of kind "+r.Kind+" have no external resource, which could not be seen")
		}
	}
	change.Unseen = c.Unseen()
	return change, nil
}

// Resume returns the change that ends the pause of an object.
func (c *Cluster) Resume(ctx context.Context, r Ref) (Change, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Change{}, err
	}
	change := c.inAnyVersion(u, api.AnnotationPaused, "")
	if change.Annotation == "" {
		change.Effects = []string{"it is not paused"}
		return change, nil
	}
	change.Effects = append(change.Effects, "the external resource is changed again where it differs from the spec")
	return change, nil
}

// Reconcile returns the change that asks for a pass over an object now. The token is what the status has when that is done.
func (c *Cluster) Reconcile(ctx context.Context, r Ref, token string) (Change, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Change{}, err
	}
	change := c.inAnyVersion(u, api.AnnotationReconcile, token)
	change.Undo = ""
	change.Effects = append(change.Effects, "a retry does not wait any longer, and what was refused for good is tried once more")
	_, handled, _ := unstructured.NestedString(u.Object, "status", "handledReconcile")
	switch {
	case handled, c.Declares(ctx, r, "status", "handledReconcile"):
	case ofOperator(r.gvk().Group) && c.definitionUnseen(r):
		change.Effects = append(change.Effects, "nothing, if the operator of "+r.Kind+" is not one of trimtab, which could not be seen")
	default:
		return Change{}, fmt.Errorf("objects of kind %s have no status.handledReconcile, so no operator of trimtab acts on the request", r.Kind)
	}
	change.Unseen = c.Unseen()
	return change, nil
}

// inAnyVersion returns a change that is right for the object whatever else changes in it meanwhile.
func (c *Cluster) inAnyVersion(u *unstructured.Unstructured, annotation, value string) Change {
	change := c.changeOf(u, annotation, value)
	change.version = ""
	return change
}

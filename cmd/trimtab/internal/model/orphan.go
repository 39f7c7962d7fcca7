package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/api"
)

// mostAnnotation bounds the annotations of an object: the API server accepts 256 KiB in all.
const mostAnnotation = 200 << 10

// Orphan returns the change by which what an object stands for stays when the object is deleted: its external resource, or the
// dependents of a component.
func (c *Cluster) Orphan(ctx context.Context, r Ref) (Change, error) {
	u, err := c.load(ctx, r)
	if err != nil {
		return Change{}, err
	}
	var change Change
	switch c.natureOf(ctx, u) {
	case natureComponent:
		change, err = c.orphanDependents(ctx, u)
	case natureExternal, natureUnknown:
		change = c.orphanExternal(u)
	case natureNone:
		err = fmt.Errorf("objects of kind %s stand for nothing outside themselves; to keep what %s owns, use: %s",
			r.Kind, r, c.Command("delete", r, "--cascade=orphan"))
	}
	if err != nil {
		return Change{}, err
	}
	if change.Annotation != "" && !u.GetDeletionTimestamp().IsZero() {
		change.Effects = append(change.Effects, "it is being deleted already: what has been deleted by now does not come back")
	}
	for _, owned := range c.owned(ctx, u) {
		change.Gone = append(change.Gone, owned.Kind+"/"+owned.Name)
	}
	change.Gone = slices.DeleteFunc(change.Gone, func(name string) bool { return slices.Contains(change.Kept, name) })
	change.Unseen = c.Unseen()
	return change, nil
}

func (c *Cluster) orphanExternal(u *unstructured.Unstructured) Change {
	change := c.changeOf(u, api.AnnotationDeletion, "orphan")
	if id := externalID(u); id != "" {
		change.Kept = []string{fmt.Sprintf("external resource %q", id)}
	} else if change.Annotation != "" {
		change.Effects = append(change.Effects, "no external resource of it is known yet; one that it gets is kept")
	}
	if change.Annotation != "" {
		change.Effects = append(change.Effects, "the ownership mark is then taken off it, if the driver can do that")
	}
	return change
}

// orphanDependents names all dependents in the annotation abandon, which has an effect only for those that would be deleted.
func (c *Cluster) orphanDependents(ctx context.Context, u *unstructured.Unstructured) (Change, error) {
	r, items := refOf(u), c.items(ctx, u)
	if len(items) == 0 {
		if unseen := c.Unseen(); len(unseen) > 0 {
			return Change{}, fmt.Errorf("%s: its dependents are not known: %s", r, strings.Join(unseen, "; "))
		}
		return Change{Object: r, Effects: []string{"it has no dependents"}}, nil
	}
	name := c.operatorName(ctx, u)
	if name == "" {
		return Change{}, fmt.Errorf("%s does not show the name of its operator; set the annotation <operator>/abandon to the names of the dependents yourself", r)
	}
	key := name + "/abandon"
	var all []string
	for word := range strings.SplitSeq(u.GetAnnotations()[key], ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	var kept []string
	for _, item := range items {
		if !slices.Contains(all, item.Key()) {
			all = append(all, item.Key())
		}
		kept = append(kept, item.Kind+"/"+item.Name)
	}
	value := strings.Join(all, ",")
	if len(value) > mostAnnotation {
		return Change{}, fmt.Errorf("%s has %d dependents, whose names do not fit in an annotation; set delete-policy: orphan-on-delete in its spec or in its manifests", r, len(items))
	}
	change := c.changeOf(u, key, value)
	change.Kept = kept
	if change.Annotation != "" {
		change.Effects = append(change.Effects, "dependents that it gets later are not kept",
			"until then, one of these that is no longer rendered is kept as well, instead of being deleted")
	}
	return change, nil
}

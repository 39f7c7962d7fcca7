package model

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Summary is how the objects of some kinds are.
type Summary struct {
	// NotReady are the objects that are not ready or paused, those of a reason together, and what is worst first: False
	// before Unknown, and what has been so for longest.
	NotReady []Object `json:"notReady"`
	// Ready is how many are ready, by kind.
	Ready  map[string]int `json:"ready"`
	Unseen []string       `json:"unseen,omitempty"`
}

// Status describes the objects of a kind in a namespace; those of all operators' kinds if kind is empty, and in all namespaces if
// that is empty.
func (c *Cluster) Status(ctx context.Context, kind schema.GroupVersionKind, namespace string) (Summary, error) {
	kinds := []schema.GroupVersionKind{kind}
	if kind.Empty() {
		kinds = c.Kinds()
	}
	s := Summary{Ready: map[string]int{}}
	for _, k := range kinds {
		list, err := c.Objects(ctx, k, namespace)
		switch {
		case err == nil, kind.Empty() && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)): // such as a review, which cannot be listed
		case kind.Empty():
			c.miss("objects of kind "+k.Kind, err)
		default:
			return s, err
		}
		for i := range list {
			o := c.describe(ctx, &list[i])
			switch {
			case o.Ready == "":
			case o.Ready == metav1.ConditionTrue && o.Paused == "" && !o.Deleting:
				s.Ready[k.Kind]++
			default:
				s.NotReady = append(s.NotReady, o)
			}
		}
	}
	oldest := map[string]metav1.Time{}
	for _, o := range s.NotReady {
		if at, has := oldest[o.Why()]; !has || o.Since.Time.Before(at.Time) {
			oldest[o.Why()] = o.Since
		}
	}
	slices.SortStableFunc(s.NotReady, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), oldest[a.Why()].Compare(oldest[b.Why()].Time), strings.Compare(a.Why(), b.Why()),
			a.Since.Compare(b.Since.Time), strings.Compare(a.Kind, b.Kind), strings.Compare(named(a.Ref), named(b.Ref)))
	})
	s.Unseen = c.Unseen()
	return s, nil
}

// Kinds returns the kinds that operators look after.
func (c *Cluster) Kinds() (kinds []schema.GroupVersionKind) {
	for _, k := range c.kinds() {
		if ofOperator(k.Group) {
			kinds = append(kinds, k.GroupVersionKind)
		}
	}
	return kinds
}

// Why returns why an object is not ready, in a word.
func (o Object) Why() string {
	switch {
	case o.Deleting:
		return "Deleting"
	case o.Paused != "":
		return "Paused"
	}
	return cmp.Or(o.Reason, o.State)
}

// Kinds returns the kinds of which some are ready, in order.
func (s Summary) Kinds() []string { return slices.Sorted(maps.Keys(s.Ready)) }

// Tree describes an object and, below it, all that it is made of. Its dependents and the objects that it owns are looked up in
// its namespace.
func (c *Cluster) Tree(ctx context.Context, r Ref) (Object, []string) {
	o := c.object(ctx, r, "")
	c.grow(ctx, &o, map[Ref]bool{r: true})
	return o, c.Unseen()
}

func (c *Cluster) grow(ctx context.Context, o *Object, seen map[Ref]bool) {
	if o.live == nil {
		return
	}
	if e := statusOf(o.live).External; e != nil && e.ID != "" {
		o.Objects = append(o.Objects, Object{Ref: Ref{Kind: "external", Name: e.ID}, Relation: "external", State: e.Status})
	}
	for _, next := range c.below(ctx, o.live) {
		if seen[next.Ref] {
			continue
		}
		seen[next.Ref] = true
		c.grow(ctx, &next, seen)
		o.Objects = append(o.Objects, next)
	}
}

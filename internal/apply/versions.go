package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// isVersionRemoved reports whether an apply was refused because managedFields name a version that the definition of
// the kind no longer has: an apply converts the object to each version that was applied. The API server has no better
// answer than a text.
func isVersionRemoved(err error) bool {
	return err != nil && strings.Contains(err.Error(), "request to convert CR to an invalid group/version")
}

// isVersionOutgrown reports whether an apply was refused because the manifest has fields that the version in which the
// manager applied before does not know: an apply converts its result to that version. This, too, is only a text.
func isVersionOutgrown(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to convert merged object to last applied version")
}

// applyServed is apply for an object whose managedFields may name versions that were removed, or that lack fields of
// the manifest: what was written in them counts as written in the manifest's version. Otherwise no apply would ever
// succeed.
func (c *Client) applyServed(ctx context.Context, m *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	live, err := c.apply(ctx, m, o)
	if !isVersionRemoved(err) && !isVersionOutgrown(err) {
		return live, err
	}
	if err := c.moveVersions(ctx, m, o); err != nil {
		return nil, fmt.Errorf("replace versions in managedFields: %w", err)
	}
	return c.apply(ctx, m, o)
}

// moveVersions has managedFields name the version of a manifest instead of those that are not served, and of the one
// in which the manager applied before. All of them are replaced at once: the API server ignores managedFields in which
// one cannot be converted.
func (c *Client) moveVersions(ctx context.Context, m *unstructured.Unstructured, o Options) error {
	live, err := c.Get(ctx, RefOf(m))
	if err != nil {
		return replaced(err)
	}
	if o.UID != "" && live.GetUID() != o.UID {
		return fmt.Errorf("%w: it has another uid", ErrReplaced)
	}
	group := &metav1.APIGroup{}
	if err := c.Read(ctx, "/apis/"+m.GroupVersionKind().Group, group); err != nil {
		return err
	}
	served := map[any]bool{}
	for _, v := range group.Versions {
		served[schema.GroupVersion{Group: group.Name, Version: v.Version}.String()] = true
	}
	old := func(e entry) bool { return !served[e["apiVersion"]] || e.is(c.manager, opApply) }
	_, err = c.reassign(ctx, live, func(own *owners) { own.rename(old, m.GetAPIVersion()) })
	return err
}

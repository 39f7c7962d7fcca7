package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// settle takes over fields that others own and that are not in the manifest, after it was applied: what
// the operator itself wrote by updates, and, to override, what kubectl and Helm wrote. Finalizers of others
// stay: somebody waits for the end of the object. It costs nothing where there is nothing of the kind.
func (c *Client) settle(ctx context.Context, m, live *unstructured.Unstructured, o Options) (*unstructured.Unstructured, error) {
	own := ownersOf(live.Object, c.manager)
	applied := own.ours()
	mine := func(e entry) bool { return e.is(c.manager, opUpdate) }
	theirs := func(e entry) bool {
		return o.Override && e.whole() && tool(e["manager"]) || o.Override && o.Adopt && e.is(fingerprint.BeforeFirstApply, opUpdate)
	}
	claim := func(own *owners) fields {
		return union(own.take(mine, o.taken), own.take(theirs, func(set fields) fields { return o.taken(withoutFinalizers(set)) }))
	}
	if moved := claim(own); exceeds(moved, applied) {
		if _, err := c.reassign(ctx, live, func(own *owners) { claim(own) }); err != nil {
			return nil, err
		}
		return c.apply(ctx, m, o)
	}
	return live, nil
}

// taken is a set without what is left to others.
func (o Options) taken(set fields) fields { return minus(set, within(set, o.Leave)) }

// disown has nobody but the manager own what the manager applied, after somebody removed managedFields.
// Without that, what is no longer in the manifest would stay.
func (c *Client) disown(ctx context.Context, ref Ref, uid types.UID) error {
	live, err := c.Get(ctx, ref)
	if err != nil {
		return replaced(err)
	}
	if live.GetUID() != uid {
		return fmt.Errorf("%w: it has another uid", ErrReplaced)
	}
	before := func(e entry) bool { return e.is(fingerprint.BeforeFirstApply, opUpdate) }
	own := ownersOf(live.Object, c.manager)
	if !slices.ContainsFunc(own.entries, func(e entry) bool { return before(e) && meets(e.fields(), own.ours()) }) {
		return nil
	}
	_, err = c.reassign(ctx, live, func(own *owners) { own.drop(before, own.ours()) })
	return err
}

// mend applies a manifest that the API server refused because it would be invalid together with what
// others wrote: a list with two items of one name, or two sources in one volume. What they wrote there is
// taken over first. If others wrote nothing there, it may be a default of the API server that is in the way.
// The error is the one of the refusal if it has another cause.
func (c *Client) mend(ctx context.Context, m *unstructured.Unstructured, o Options, refusal error) (*unstructured.Unstructured, error) {
	live, err := c.Get(ctx, RefOf(m))
	if err != nil {
		return nil, errors.Join(refusal, err)
	}
	if live.GetUID() != o.UID {
		return nil, fmt.Errorf("%w: it has another uid", ErrReplaced)
	}
	paths, _ := fingerprint.Diff(m.Object, live.Object, 0)
	paths = parents(paths)
	claim := func(own *owners) fields {
		return own.take(func(e entry) bool { return e.whole() && e["operation"] == opUpdate },
			func(set fields) fields { return o.taken(within(set, paths)) })
	}
	own := ownersOf(live.Object, c.manager)
	if moved := claim(own); len(moved) == 0 {
		return c.withoutDefaults(ctx, m, live, o, refusal)
	}
	if _, err := c.reassign(ctx, live, func(own *owners) { claim(own) }); err != nil {
		return nil, err
	}
	return c.apply(ctx, m, o)
}

// withoutDefaults applies a manifest without fields that the API server set by itself, such as the
// parameters of a rolling update in a Deployment whose strategy is to be Recreate. An apply leaves what nobody
// owns. So the manager owns them first: then an apply without them removes them.
func (c *Client) withoutDefaults(ctx context.Context, m, live *unstructured.Unstructured, o Options, refusal error) (*unstructured.Unstructured, error) {
	set := defaults(m.Object, live.Object, ownersOf(live.Object, c.manager), refusedFields(refusal))
	if len(set) == 0 {
		return nil, refusal
	}
	if _, err := c.reassign(ctx, live, func(own *owners) { own.give(set, m.GetAPIVersion()) }); err != nil {
		return nil, err
	}
	return c.apply(ctx, m, o)
}

// reassign changes who owns the fields of an object.
func (c *Client) reassign(ctx context.Context, live *unstructured.Unstructured, change func(*owners)) (*unstructured.Unstructured, error) {
	return c.amend(ctx, live, func(live *unstructured.Unstructured) map[string]any {
		own := ownersOf(live.Object, c.manager)
		change(own)
		return map[string]any{"managedFields": own.list()}
	})
}

// attempts is how often a change that depends on what was read is tried.
const attempts = 5

// amend changes the metadata of an object as it is. If somebody wrote meanwhile, it reads the object and
// tries again.
func (c *Client) amend(ctx context.Context, live *unstructured.Unstructured, change func(live *unstructured.Unstructured) map[string]any) (*unstructured.Unstructured, error) {
	ref, uid := RefOf(live), live.GetUID()
	for try := 1; ; try++ {
		metadata := change(live)
		metadata["uid"], metadata["resourceVersion"] = string(uid), live.GetResourceVersion()
		changed, err := c.Patch(ctx, ref, map[string]any{"metadata": metadata})
		if !apierrors.IsConflict(err) || try == attempts {
			return changed, replaced(err)
		}
		if live, err = c.Get(ctx, ref); err != nil {
			return nil, replaced(err)
		}
		if live.GetUID() != uid {
			return nil, fmt.Errorf("%w: it has another uid", ErrReplaced)
		}
	}
}

// replaced makes an answer that the object is not there any more an [ErrReplaced].
func replaced(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	return err
}

// Relinquish gives up fields that the manager wrote. Their values stay.
func (c *Client) Relinquish(ctx context.Context, live *unstructured.Unstructured, paths []fingerprint.Path) (*unstructured.Unstructured, error) {
	ours := func(e entry) bool {
		return e["manager"] == c.manager && e.whole() && len(within(e.fields(), paths)) > 0
	}
	if !slices.ContainsFunc(ownersOf(live.Object, c.manager).entries, ours) {
		return live, nil
	}
	return c.reassign(ctx, live, func(own *owners) {
		for _, e := range own.entries {
			if ours(e) {
				own.drop(func(other entry) bool { return other.is(c.manager, e["operation"].(string)) }, within(e.fields(), paths))
			}
		}
	})
}

// Release gives up an object: it keeps its values, and neither the labels, annotations and finalizers
// that are named nor the managedFields say that it was the manager's. The error is [ErrReplaced] if it is
// gone.
func (c *Client) Release(ctx context.Context, live *unstructured.Unstructured, labels, annotations, finalizers []string) error {
	nulls := func(keys []string) map[string]any {
		out := map[string]any{}
		for _, key := range keys {
			out[key] = nil
		}
		return out
	}
	_, err := c.amend(ctx, live, func(live *unstructured.Unstructured) map[string]any {
		own := ownersOf(live.Object, c.manager)
		kept := own.entries[:0]
		for _, e := range own.entries {
			if e["manager"] != c.manager {
				kept = append(kept, e)
			}
		}
		own.entries = kept
		metadata := map[string]any{"labels": nulls(labels), "annotations": nulls(annotations), "managedFields": own.list()}
		if left, changed := without(live.GetFinalizers(), finalizers); changed {
			metadata["finalizers"] = left
		}
		return metadata
	})
	return err
}

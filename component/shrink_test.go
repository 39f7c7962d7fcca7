package component_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// numbered are ConfigMaps named one after the other.
func numbered(n int) []client.Object {
	var all []client.Object
	for i := range n {
		all = append(all, configMap(fmt.Sprintf("m%03d", i), "1"))
	}
	return all
}

func TestPruneGuard(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]int{"to nothing": 0, "by more than half": 1} {
		t.Run("B-14 prune guard/"+name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.create(numbered(4)...)
			b.ready()
			b.change(numbered(left)...)
			now := b.await("PruneBlocked", func(o *bundle.Bundle) bool {
				return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionPruneBlocked) &&
					o.Status.State == component.StateProcessing && containsAll(o.Status.Message, []string{b.key("allow-prune")})
			})
			b.fence()
			for i := range 4 {
				b.live(fmt.Sprintf("m%03d", i))
			}
			allow := func(generation int64) {
				b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, b.key("allow-prune"), generation))
			}
			allow(now.Generation - 1)
			b.fence()
			b.live("m003")
			allow(now.Generation)
			done := b.ready()
			if len(done.Status.Inventory) != left || meta.FindStatusCondition(done.Status.Conditions, api.ConditionPruneBlocked) != nil {
				t.Errorf("status %+v, want %d dependents and no condition", done.Status, left)
			}
			b.absent(b.named("m003"))
		})
	}
	t.Run("B-14 prune guard/what was kept stays, whatever else is rendered", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(numbered(10)...)
		b.ready()
		b.change(numbered(4)...)
		b.pruneBlocked("6 of 10")
		more := numbered(4)
		for i := range 6 {
			more = append(more, configMap(fmt.Sprintf("new-%d", i), "1"))
		}
		b.stop() // the guard is not a matter of one process
		b.change(more...)
		b.start()
		b.pruneBlocked("6 of 16")
		b.value("new-5", "1")
		b.change(append(more, numbered(5)[4])...) // one of them is rendered again
		b.pruneBlocked("5 of 16")
		b.change(more...) // and leaves alone: the guard lets it go
		now := b.pruneBlocked("5 of 15")
		testenv.Gone(t, b.admin, b.named("m004"), "deleted")
		for i := 5; i < 10; i++ {
			b.live(fmt.Sprintf("m%03d", i))
		}
		b.requests.Reset()
		b.fence()
		if got := b.sent(); got.Dependents > 0 || got.Component > fence {
			t.Errorf("a pass of a component whose pruning is blocked: %s", got)
		}
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, b.key("allow-prune"), now.Generation))
		if done := b.ready(); len(done.Status.Inventory) != 10 {
			t.Errorf("%d dependents, want 10", len(done.Status.Inventory))
		}
		b.absent(b.named("m009"))
	})
	t.Run("B-14 prune guard/others are added in the same revision", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(numbered(10)...)
		b.ready()
		others := numbered(4)
		for i := range 6 {
			others = append(others, configMap(fmt.Sprintf("new-%d", i), "1"))
		}
		b.change(others...)
		b.pruneBlocked("6 of 16")
		b.value("new-5", "1")
		b.fence()
		b.live("m009")
	})
	t.Run("B-14 prune guard/what does not count", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		var more []client.Object
		for i := range 6 {
			more = append(more, configMap(fmt.Sprintf("new-%d", i), "1", b.key("uncounted"), "true"))
		}
		b.create(append(more, numbered(4)...)...)
		b.ready()
		b.change(append(more, numbered(1)...)...)
		b.pruneBlocked("3 of 10")
		b.fence()
		b.live("m003")
	})
	t.Run("B-14 prune guard/names with a hash", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("web", "1"), configMap("settings-7f9c", "1"), configMap("texts-b3d1", "1"))
		b.ready()
		b.change(configMap("web", "1"), configMap("settings-01aa", "2"), configMap("texts-22bb", "2"))
		b.ready()
		testenv.Gone(t, b.admin, b.named("texts-b3d1"), "replaced")
	})
	t.Run("B-14 prune guard/half of it, and the option", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(numbered(4)...)
		b.ready()
		b.change(numbered(2)...)
		b.ready()
		b.absent(b.named("m003"))

		b = newBench(t, func(o *options) { o.PruneLimit = 0.1 })
		b.create(numbered(4)...)
		b.ready()
		b.change(numbered(3)...)
		b.await("PruneBlocked", func(o *bundle.Bundle) bool {
			return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionPruneBlocked)
		})
		b.live("m003")

		b = newBench(t, func(o *options) { o.PruneLimit = 1 })
		b.create(numbered(4)...)
		b.ready()
		b.change()
		b.ready()
		b.absent(b.named("m003"))
	})
}

// pruneBlocked waits until the component says how many dependents it keeps.
func (b *bench) pruneBlocked(what string) *bundle.Bundle {
	b.t.Helper()
	return b.await("PruneBlocked: "+what, func(o *bundle.Bundle) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionPruneBlocked) && o.Status.ObservedGeneration == o.Generation &&
			containsAll(o.Status.Message, []string{what, b.key("allow-prune")})
	})
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	t.Run("B-11 copied labels", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		copied := b.named("copy")
		copied.Labels, copied.Annotations = b.live("one").Labels, b.live("one").Annotations
		if err := b.admin.Create(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		b.requests.Reset()
		b.fence()
		b.change(configMap("one", "1"), configMap("two", "1"), configMap("copy", "1"))
		b.failed("copy", "belongs to")
		b.change(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.delete()
		b.gone()
		b.absent(b.named("one"))
		if now := b.live("copy"); now.ResourceVersion != copied.ResourceVersion {
			t.Error("the copy was written")
		}
		for _, r := range b.writes("copy") {
			if r.Code < 300 {
				t.Errorf("sent %v", r)
			}
		}
	})
	t.Run("created again by somebody else with our marks", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.stop()
		theirs := b.named("one")
		theirs.Labels, theirs.Annotations = b.live("one").Labels, b.live("one").Annotations
		b.drop(b.named("one"))
		if err := b.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		b.change(configMap("two", "1"))
		b.start()
		b.ready()
		b.live("one")
		b.delete()
		b.gone()
		b.live("one")
		b.absent(b.named("two"))
	})
	t.Run("created again by ourselves", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.drop(b.named("one"))
		b.value("one", "1")
		b.fence()
		b.stop() // the new UID is not in the inventory
		b.delete()
		b.start()
		b.gone()
		b.absent(b.named("one"))
	})
}

func TestDeletionNeedsNoRendering(t *testing.T) {
	t.Parallel()
	t.Run("rendering fails", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.stop()
		b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
			return component.Set{}, errors.New("the template is broken")
		})
		b.start()
		b.change(configMap("three", "1"))
		b.failed("the template is broken")
		b.delete()
		b.gone()
		b.absent(b.named("one"))
		b.absent(b.named("two"))
	})
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	t.Run("P1 a dependent that cannot be deleted is given up", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"), configMap("two", "1"))
		b.ready()
		b.patch("v1", "ConfigMap", "one", `{"metadata":{"finalizers":["example.org/holds"]}}`)
		b.delete()
		b.waiting("ConfigMap "+b.namespace+"/one", "held by finalizer example.org/holds (set by ")
		b.absent(b.named("two"))
		b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"/ConfigMap/%s/one"}}}`, b.key("abandon"), b.namespace))
		b.gone()
		b.live("one")
		b.patch("v1", "ConfigMap", "one", `{"metadata":{"finalizers":null}}`)
		testenv.Gone(t, b.admin, b.named("one"), "let go")
	})
}

// deny has an admission policy refuse ConfigMaps of these names in the namespace of the bench, and waits
// until it does.
func (b *bench) deny(names ...string) {
	b.t.Helper()
	denied := []any{"probe"}
	for _, n := range names {
		denied = append(denied, n)
	}
	policy := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", b.operator, map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": b.namespace}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
				"resources": []any{"configmaps"}, "resourceNames": denied,
			}},
		},
		"validations": []any{map[string]any{"expression": "false", "message": "not this one"}},
	}})
	binding := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", b.operator, map[string]any{"spec": map[string]any{
		"policyName": b.operator, "validationActions": []any{"Deny"},
	}})
	for _, o := range []client.Object{policy, binding} {
		if err := b.admin.Create(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() {
			if err := b.admin.Delete(context.WithoutCancel(b.t.Context()), o); err != nil {
				b.t.Error(err)
			}
		})
	}
	for b.admin.Create(b.t.Context(), b.named("probe"), client.DryRunAll) == nil {
		if b.t.Context().Err() != nil {
			b.t.Fatal("the policy does not work")
		}
	}
}

package component_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/node"
)

// unrenderable has the operator fail to render from its next start on.
func (b *bench) unrenderable() {
	b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		return component.Set{}, errors.New("Secret db is missing")
	})
}

// leaking waits until the deletion of the component "a" says that it may leave external resources.
func (b *bench) leaking() *bundle.Bundle {
	b.t.Helper()
	return b.await("held, with the way out", func(o *bundle.Bundle) bool {
		return o.DeletionTimestamp != nil && containsAll(o.Status.Message, []string{"Secret db is missing", b.key("abandon") + ": unrecorded"})
	})
}

// sharding has the operator keep its inventories in ConfigMaps.
func sharding(o *options) {
	o.Inventory = component.InventoryOptions{ReadableUpTo: 1, InlineUpTo: 1}.WithShards(1)
}

// TestNodeIsNotLeaked: a component whose inventory is lost is not gone before its external resources are, even if
// rendering fails.
func TestNodeIsNotLeaked(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*testing.T, *vendor){
		"the inventory is gone": lostNodes, "a ConfigMap of it is gone": lostShard,
		"nothing was left": emptiedNodes, "nothing was ever rendered": neverRendered,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vendor{things: map[string]sold{}}
			f(t, v)
			if left := v.names(); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func lostNodes(t *testing.T, v *vendor) {
	t.Helper()
	for _, abandon := range []bool{false, true} {
		b := newBench(t, selling(v))
		b.create(database("db", 3))
		b.ready()
		b.stop()
		b.patchStatus(`{"status":{"inventory":null}}`)
		renders := b.renderer
		b.unrenderable()
		b.delete()
		b.start()
		b.leaking()
		if abandon {
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"unrecorded"}}}`, b.key("abandon")))
			b.gone()
			if left := v.names(); len(left) != 1 {
				t.Errorf("%q is left, want what was given up", left)
			}
			v.with(func() { clear(v.things) })
			return
		}
		b.stop()
		b.renderer = renders
		b.start()
		b.gone()
		if left := v.names(); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	}
}

// lostShard: the rest of the inventory counts, also for what is no longer rendered.
func lostShard(t *testing.T, v *vendor) {
	t.Helper()
	b := newBench(t, selling(v), sharding)
	var all []client.Object
	for i := range 8 {
		all = append(all, database(fmt.Sprintf("db-%d", i), 3))
	}
	b.create(all...)
	o := b.ready()
	if len(o.Status.InventoryShards) < 2 {
		t.Fatalf("%d ConfigMaps", len(o.Status.InventoryShards))
	}
	b.stop()
	shard := b.live(o.Status.InventoryShards[0])
	lost, err := api.DecodeInventory(shard.BinaryData[api.InventoryKey])
	if err != nil {
		t.Fatal(err)
	}
	shard.Finalizers = nil
	if err := b.admin.Update(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	b.drop(shard)
	b.unrenderable()
	b.delete()
	b.start()
	if now := b.leaking(); len(now.Status.InventoryShards) != len(o.Status.InventoryShards) {
		t.Errorf("the status names ConfigMaps %q, want %q: it could still be restored", now.Status.InventoryShards, o.Status.InventoryShards)
	}
	b.stop()
	b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		for _, item := range lost {
			s.Add(database(item.Name, 3))
		}
		return s, nil
	})
	b.start()
	b.gone()
}

// emptiedNodes: a component that has deleted all it had needs no rendering.
func emptiedNodes(t *testing.T, v *vendor) {
	t.Helper()
	b := newBench(t, selling(v), func(o *options) { o.PruneLimit = 1 })
	b.create(database("db", 3))
	b.ready()
	b.change()
	b.await("empty", func(o *bundle.Bundle) bool { return isReady(o) && len(o.Status.Inventory) == 0 })
	b.stop()
	b.unrenderable()
	b.delete()
	b.start()
	b.gone()
}

func neverRendered(t *testing.T, v *vendor) {
	t.Helper()
	b := prepareBench(t, selling(v))
	b.unrenderable()
	b.start()
	b.create(database("db", 3))
	b.failed("Secret db is missing")
	b.delete()
	b.gone()
}

// TestNodeMoves: an external resource that another component has recorded is not deleted.
func TestNodeMoves(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*bench){
		"it is no longer rendered": func(b *bench) { b.change(configMap("one", "a"), configMap("two", "a")) },
		"the component is deleted": func(b *bench) { b.delete() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vendor{things: map[string]sold{}}
			b := prepareBench(t, selling(v))
			sells := v.sells()
			sells.Limits.Adoption = "always"
			b.options.Drivers = []node.Driver{external.Nodes(things{}, sells)}
			b.tune = func(c *component.Controller[*bundle.Bundle]) { c.RecheckBlocked(50 * time.Millisecond) }
			b.start()
			b.create(configMap("one", "a"), configMap("two", "a"), database("db", 3))
			b.ready()
			there := database("db", 3)
			metav1.SetMetaDataAnnotation(&there.ObjectMeta, api.AnnotationAdoption, "always")
			second := b.createAs("b", configMap("own", "b"), there)
			b.awaitAs("b", "it is refused", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "belongs to") })
			leave(b)
			way := b.key("abandon") + ": " + there.GroupVersionKind().Group + "/Thing/" + b.namespace + "/db"
			b.await("it is kept", func(o *bundle.Bundle) bool {
				return containsAll(o.Status.Message, []string{b.namespace + "/b has recorded it, too", way})
			})
			if got := v.calls("delete"); len(got) > 0 {
				t.Errorf("calls %q", got)
			}
			if strings.Contains(name, "deleted") { // it is wanted nowhere
				if err := b.admin.Delete(t.Context(), second); err != nil {
					t.Fatal(err)
				}
				b.gone()
				if left := v.names(); len(left) > 0 {
					t.Errorf("%q is left", left)
				}
				return
			}
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"Thing/db"}}}`, b.key("abandon")))
			b.ready() // without it
			b.patch("bundles.trimtab.dev/v1", "Bundle", "b", fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, api.AnnotationReconcile))
			b.readyAs("b")
			if got := v.calls("create", "delete"); len(got) != 1 {
				t.Errorf("calls %q, want one create", got)
			}
		})
	}
}

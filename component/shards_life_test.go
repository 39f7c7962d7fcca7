package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// whole waits until the inventory of the component "a" is in ConfigMaps that all stay, and there are no others.
func (b *bench) whole() (o *bundle.Bundle) {
	b.t.Helper()
	within(b.t, "the inventory is whole", func() bool {
		o = &bundle.Bundle{}
		if err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "a"}, o); err != nil {
			b.t.Fatal(err)
		}
		list := &corev1.ConfigMapList{}
		if err := b.admin.List(b.t.Context(), list, client.InNamespace(b.namespace), client.HasLabels{b.key("inventory-of")}); err != nil {
			b.t.Fatal(err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			if m.DeletionTimestamp != nil || !slices.Contains(m.Finalizers, b.key("inventory")) || !slices.Contains(o.Status.InventoryShards, m.Name) {
				return false
			}
		}
		return sharded(o) && len(list.Items) == len(o.Status.InventoryShards)
	})
	return o
}

// dropShard deletes the ConfigMap with the first part of the inventory, as a user would.
func (b *bench) dropShard(o *bundle.Bundle) (name string) {
	b.t.Helper()
	name = o.Status.InventoryShards[0]
	b.drop(b.named(name))
	return name
}

// TestShardIsHeld: somebody deletes a ConfigMap with a part of an inventory.
func TestShardIsHeld(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*bench){
		"the operator runs": shardDeleted, "the operator is away": shardDeletedMeanwhile, "others hold it, too": shardHeldByOthers,
		"it is of an older version": shardOfOlderVersion, "of a component that is suspended": shardOfSuspended,
		"of a component that is gone": shardOrphaned, "left by a process that was killed": shardLeft,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, sharding)
			b.create(manyMaps(4, 0)...)
			b.ready()
			b.whole()
			test(b)
		})
	}
}

// restored waits until the inventory is whole again, and checks that nothing was done to a dependent.
func (b *bench) restored(without string) {
	b.t.Helper()
	o := b.await("named no longer", func(o *bundle.Bundle) bool { return sharded(o) && !slices.Contains(o.Status.InventoryShards, without) })
	if n := len(b.items(o)); n != 4 {
		b.t.Errorf("%d dependents are recorded, want 4", n)
	}
	for _, r := range b.requests.All() {
		if r.IsWrite() && strings.HasPrefix(r.Name, "m-") {
			b.t.Errorf("sent %v", r)
		}
	}
}

func shardDeleted(b *bench) {
	b.requests.Reset()
	name := b.dropShard(b.ready())
	b.restored(name)
	b.whole()
	within(b.t, "the event", func() bool {
		list := &eventsv1.EventList{}
		if err := b.admin.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
			b.t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "InventoryDeleted" && containsAll(e.Note, []string{b.namespace + "/" + name, "written again"})
		})
	})
	again := b.dropShard(b.ready()) // which has another name now
	b.restored(again)
	b.whole()
	b.requests.Reset()
	b.fence()
	if sent := b.sent(); sent.Dependents > 0 || len(sent.Reads) > 0 {
		b.t.Errorf("a pass after that: %s", sent)
	}
	b.delete()
	b.gone()
	if left := b.shards(); len(left) > 0 {
		b.t.Errorf("%q are left", left)
	}
}

func shardDeletedMeanwhile(b *bench) {
	o := b.ready()
	b.stop()
	b.requests.Reset()
	name := b.dropShard(o)
	b.start()
	b.restored(name)
	b.whole()
}

func shardHeldByOthers(b *bench) {
	o := b.ready()
	name := o.Status.InventoryShards[0]
	b.patch("v1", "ConfigMap", name, fmt.Sprintf(`{"metadata":{"finalizers":["example.org/holds",%q]}}`, b.key("inventory")))
	b.requests.Reset()
	b.drop(b.named(name))
	b.restored(name)
	testenv.Wait(b.t, b.admin, b.named(name), "released", func(m *corev1.ConfigMap) bool { return !slices.Contains(m.Finalizers, b.key("inventory")) })
	b.delete()
	b.gone()
	if left := b.shards(); len(left) != 1 {
		b.t.Errorf("%q are left, want the one that others hold", left)
	}
	b.patch("v1", "ConfigMap", name, `{"metadata":{"finalizers":null}}`)
	testenv.Gone(b.t, b.admin, b.named(name), "released by the others")
}

// shardOfOlderVersion: a ConfigMap without a finalizer is gone at once, and the process knows what it had.
func shardOfOlderVersion(b *bench) {
	o := b.ready()
	name := o.Status.InventoryShards[0]
	uid := b.live(name).UID
	b.requests.Reset()
	b.destroy(name)
	within(b.t, "it is written again", func() bool {
		m := &corev1.ConfigMap{}
		err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, m)
		return err == nil && m.UID != uid && slices.Contains(m.Finalizers, b.key("inventory"))
	})
	b.whole()
}

func shardOfSuspended(b *bench) {
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"suspended"}}}`, b.key("mode")))
	b.fence()
	b.requests.Reset()
	name := b.dropShard(b.await("suspended", sharded))
	b.restored(name)
	b.whole()
}

// shardOrphaned: the finalizer of a component is removed while no operator runs.
func shardOrphaned(b *bench) {
	o := b.ready()
	b.stop()
	b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"finalizers":null}}`)
	b.delete()
	b.gone()
	b.dropShard(o)
	b.create(manyMaps(1, 0)...) // another one with its name
	b.start()
	within(b.t, "nothing is left", func() bool { return len(b.shards()) == 0 })
}

// shardLeft: a process that was killed has created a ConfigMap that no status names.
func shardLeft(b *bench) {
	b.stop()
	o := b.ready()
	m := b.live(o.Status.InventoryShards[0])
	m.Name, m.UID, m.ResourceVersion = "a-inventory-left", "", ""
	if err := b.admin.Create(b.t.Context(), m); err != nil {
		b.t.Fatal(err)
	}
	b.delete()
	b.start()
	b.gone()
	if left := b.shards(); len(left) > 0 {
		b.t.Errorf("%q are left", left)
	}
}

// TestShardsInDeletedNamespace: the namespace controller deletes a component with an external resource and the
// ConfigMaps with its inventory, in any order, when nothing can be created any more and nothing can be rendered. In the
// middle the operator is started again. The short form takes each fifth order.
func TestShardsInDeletedNamespace(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	var broken atomic.Bool
	b := prepareBench(t, selling(v), sharding)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(ctx context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		if broken.Load() {
			return component.Set{}, errors.New("Secret db is missing")
		}
		return render(ctx, r)
	})
	b.start()
	var all [][]int
	for i, order := range orders(4) {
		if deep() || i%5 == 0 {
			all = append(all, order)
		}
	}
	nameOf := func(i int) string { return fmt.Sprintf("c%02d", i) }
	for i := range all {
		name := nameOf(i)
		b.createAs(name, configMap(name+"-1", "1"), configMap(name+"-2", "1"), configMap(name+"-3", "1"), configMap(name+"-4", "1"), database(name+"-db", 3))
	}
	contents := make([][]client.Object, len(all))
	for i := range all {
		o := b.readyAs(nameOf(i))
		contents[i] = []client.Object{o}
		for _, name := range o.Status.InventoryShards {
			contents[i] = append(contents[i], b.named(name))
		}
	}
	broken.Store(true)
	if err := b.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	for i, order := range all {
		for _, which := range order[:2] {
			if which < len(contents[i]) {
				b.dropAny(contents[i][which])
			}
		}
	}
	b.start()
	for i, order := range all {
		for _, which := range order[2:] {
			if which < len(contents[i]) {
				b.dropAny(contents[i][which])
			}
		}
		for _, obj := range contents[i] {
			b.dropAny(obj)
		}
	}
	for i := range all {
		testenv.Gone(t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: nameOf(i)}}, fmt.Sprintf("deleted in order %v", all[i]))
	}
	within(t, "no ConfigMap is left", func() bool { return len(b.shards()) == 0 })
	if left := v.names(); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// dropAny deletes an object that may be gone.
func (b *bench) dropAny(obj client.Object) {
	b.t.Helper()
	if err := b.admin.Delete(b.t.Context(), obj); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}

// TestShardsAreUsedWhileTerminating: the namespace is being deleted and its ConfigMaps, too, but not the component.
func TestShardsAreUsedWhileTerminating(t *testing.T) {
	t.Parallel()
	b := newBench(t, sharding)
	b.create(manyMaps(4, 0)...)
	b.ready()
	o := b.whole()
	if err := b.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}); err != nil {
		t.Fatal(err)
	}
	b.dropShard(o)
	b.fence()
	b.stop()
	b.start() // reads what is being deleted
	b.fence()
	now := b.await("still named", sharded)
	if n := len(b.items(now)); n != 4 || !slices.Equal(now.Status.InventoryShards, o.Status.InventoryShards) {
		t.Errorf("%d dependents are recorded in %q, want 4 in %q", n, now.Status.InventoryShards, o.Status.InventoryShards)
	}
	b.change(manyMaps(4, 1)...) // no ConfigMap can be created
	b.value("m-000", "2")
	b.recorded(4, func(o *bundle.Bundle) bool { return o.Status.CompactInventory != "" })
	b.delete()
	b.gone()
	if left := b.shards(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// TestShardDeletionSweep: somebody deletes a ConfigMap with a part of the inventory, and the operator is killed before
// and after each write of its life.
func TestShardDeletionSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	const name = "held.op.test"
	c := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c.Spec.Objects = (&bench{t: t}).raw(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))
	componenttest.CrashSweep(t, componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme, Renderer: component.RenderFunc[*bundle.Bundle](render),
		Options: options{
			Name: name, Inventory: component.InventoryOptions{ReadableUpTo: 1, InlineUpTo: 1}.WithShards(2),
			Loop: loop.Options[*bundle.Bundle]{Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond}},
		},
		Versions: []*bundle.Bundle{c},
		Every:    killsPlayed(),
		Then: func(t testing.TB, c client.WithWatch, namespace string, _ int) {
			t.Helper()
			list := &corev1.ConfigMapList{}
			if err := c.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{name + "/inventory-of"}); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) == 0 {
				t.Fatal("the inventory is not in ConfigMaps")
			}
			if err := c.Delete(t.Context(), &list.Items[0]); err != nil {
				t.Fatal(err)
			}
			testenv.Gone(t, c, &list.Items[0], "deleted when its items are elsewhere")
		},
	})
}

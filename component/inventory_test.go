package component_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/internal/inventory"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// items returns the dependents that a component has recorded, in whichever form.
func (b *bench) items(o *bundle.Bundle) []api.InventoryItem {
	b.t.Helper()
	items, err := o.Status.Items(func(name string) ([]byte, error) {
		m := &corev1.ConfigMap{}
		err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, m)
		return m.BinaryData[api.InventoryKey], err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return items
}

// shards returns the names of the ConfigMaps that have inventories.
func (b *bench) shards() []string {
	b.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := b.admin.List(b.t.Context(), list, client.InNamespace(b.namespace), client.HasLabels{b.key("inventory-of")}); err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// recorded waits until the inventory of a component has n items and a form.
func (b *bench) recorded(n int, form func(*bundle.Bundle) bool) *bundle.Bundle {
	b.t.Helper()
	o := b.await("the form of its inventory", func(o *bundle.Bundle) bool { return isReady(o) && form(o) })
	if got := b.items(o); len(got) != n {
		b.t.Errorf("%d dependents are recorded, want %d", len(got), n)
	}
	for _, item := range b.items(o) {
		if item.UID == "" || item.Digest == "" || item.Phase != api.PhaseReady {
			b.t.Errorf("item %v is not complete", item)
		}
	}
	return o
}

// destroy deletes a ConfigMap with an inventory and removes its finalizers.
func (b *bench) destroy(name string) {
	b.t.Helper()
	uid := b.live(name).UID
	b.patch("v1", "ConfigMap", name, `{"metadata":{"finalizers":null}}`)
	b.drop(b.named(name))
	within(b.t, "it is destroyed", func() bool { // there may be another one by then
		now := b.named(name)
		err := b.admin.Get(b.t.Context(), client.ObjectKeyFromObject(now), now)
		return apierrors.IsNotFound(err) || err == nil && now.UID != uid
	})
}

func readable(o *bundle.Bundle) bool {
	return o.Status.CompactInventory == "" && o.Status.InventoryShards == nil
}

func compact(o *bundle.Bundle) bool {
	return o.Status.Inventory == nil && o.Status.CompactInventory != "" && o.Status.InventoryShards == nil
}

func sharded(o *bundle.Bundle) bool {
	return o.Status.Inventory == nil && o.Status.CompactInventory == "" && len(o.Status.InventoryShards) > 0
}

// TestInventoryForms: a component grows and shrinks, and its inventory changes its form.
func TestInventoryForms(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *options) {
		o.PruneLimit = 1
		o.Inventory = component.InventoryOptions{ReadableUpTo: 5, InlineUpTo: 2000}.WithShards(10)
	})
	b.create(manyMaps(5, 0)...)
	b.recorded(5, readable)
	b.change(manyMaps(20, 0)...)
	b.recorded(20, compact)
	b.requests.Reset()
	b.change(manyMaps(20, 1)...)
	b.ready()
	if got := b.sent(); got.Dependents != 1 || got.Component != 1 || len(got.Reads) > 0 {
		t.Errorf("a change of one: %s", got)
	}
	b.change(manyMaps(60, 0)...)
	before := b.recorded(60, sharded).Status.InventoryShards
	b.requests.Reset()
	b.change(manyMaps(60, 1)...)
	after := b.recorded(60, func(o *bundle.Bundle) bool { return sharded(o) && o.Status.InventoryShards[0] != "" }).Status.InventoryShards
	kept := 0
	for _, name := range after {
		if strings.Contains(strings.Join(before, " "), name) {
			kept++
		}
	}
	if kept != len(after)-1 {
		t.Errorf("a change of one dependent changed %d of %d ConfigMaps", len(after)-kept, len(after))
	}
	within(t, "the old ConfigMap is deleted", func() bool { return len(b.shards()) == len(after) })
	b.requests.Reset()
	b.fence()
	if got := b.sent(); got.Dependents > 0 || len(got.Reads) > 0 {
		t.Errorf("a pass without changes: %s", got)
	}

	b.stop()
	b.requests.Reset()
	b.start()
	b.fence()
	if got := b.sent(); got.Dependents > 0 || len(got.Reads) != len(after)+1 { // and a list
		t.Errorf("a restart with %d ConfigMaps: %s", len(after), got)
	}
	b.change(manyMaps(3, 1)...)
	b.recorded(3, func(o *bundle.Bundle) bool { return len(o.Status.Inventory) == 3 })
	b.await("the leftovers are gone", readable)
	within(t, "no ConfigMap is left", func() bool { return len(b.shards()) == 0 })
	b.change(manyMaps(60, 1)...)
	b.recorded(60, sharded)
	for _, name := range b.shards() {
		if owners := b.live(name).OwnerReferences; len(owners) != 1 || owners[0].Name != "a" {
			t.Errorf("ConfigMap %s does not go with its component: it has the owners %v", name, owners)
		}
	}
	b.delete()
	b.gone()
	testenv.Gone(t, b.admin, b.named("m-007"), "deleted with its component")
}

// TestInventoryUnreadable: nothing is done with an inventory that cannot be read.
func TestInventoryUnreadable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		inventory component.InventoryOptions
		damage    func(*bench, *bundle.Bundle)
		says      string
	}{
		"compact": {
			component.InventoryOptions{ReadableUpTo: 1},
			func(b *bench, o *bundle.Bundle) {
				o.Status.CompactInventory = "AAAA" + o.Status.CompactInventory[4:]
				if err := b.admin.Status().Update(b.t.Context(), o); err != nil {
					b.t.Fatal(err)
				}
			}, "status.compactInventory",
		},
		"a ConfigMap is missing": {
			component.InventoryOptions{ReadableUpTo: 1, InlineUpTo: 1},
			func(b *bench, o *bundle.Bundle) {
				b.destroy(o.Status.InventoryShards[0])
			}, "status.inventoryShards",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *options) { o.Inventory, o.PruneLimit = test.inventory, 1 })
			b.create(manyMaps(4, 0)...)
			o := b.ready()
			b.stop()
			test.damage(b, o)
			b.change(manyMaps(2, 2)...)
			b.requests.Reset()
			b.start()
			got := b.await("it says so", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, test.says) })
			if !containsAll(got.Status.Message, []string{"are found again by their labels", "only if they are still rendered", "functions are called again"}) {
				t.Errorf("message %q does not say the way out", got.Status.Message)
			}
			if sent := b.sent(); sent.Dependents > 0 {
				t.Errorf("%s", sent)
			}
			b.patchStatus(`{"status":{"compactInventory":null,"inventoryShards":null}}`)
			b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:"x"}}}`, api.AnnotationReconcile))
			b.ready()
			testenv.Gone(t, b.admin, b.named("m-003"), "no longer rendered")
			if live := b.live("m-000").Data["value"]; live != "2" {
				t.Errorf("value %q, want 2", live)
			}
		})
	}
}

func (b *bench) patchStatus(body string) {
	b.t.Helper()
	obj := &bundle.Bundle{}
	obj.Namespace, obj.Name = b.namespace, "a"
	if err := b.admin.Status().Patch(b.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// recordedItems are n items as components have them.
func recordedItems(n int) []api.InventoryItem {
	hash := func(text string, i, size int) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", text, i))
		return sum[:size]
	}
	items := make([]api.InventoryItem, n)
	for i := range items {
		items[i] = api.InventoryItem{
			Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("settings-%d", i), UID: string(uuid.NewUUID()),
			Digest:      strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash("digest", i, 16))),
			Fingerprint: base64.RawURLEncoding.EncodeToString(hash("shape", i%5, 8)) + base64.RawURLEncoding.EncodeToString(hash("values", i, 8)),
			Phase:       api.PhaseReady, Status: "Current",
		}
	}
	return items
}

// manyRecorded stores inventories as the operator does, and reads them as another process does.
func manyRecorded(t *testing.T) {
	t.Parallel()
	if racing {
		t.Skip("one goroutine, of which the race detector makes minutes; run it without -race")
	}
	b := prepareBench(t)
	for n, most := range map[int]int{10_000: 500_000, 100_000: 500_000} {
		o := b.createAs(fmt.Sprintf("with-%d", n))
		owner := inventory.Owner{Object: o, Status: o.GetStatus(), Live: b.admin, Client: b.admin}
		writer, items := inventory.Store{Operator: b.operator}, recordedItems(n)
		o.Status.Inventory = items
		if err := writer.Save(t.Context(), owner, inventory.Form{}); err != nil {
			t.Fatal(err)
		}
		status, err := json.Marshal(o.Status)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d dependents: %d ConfigMaps, %d bytes of status", n, len(o.Status.InventoryShards), len(status))
		if len(status) > most {
			t.Errorf("%d dependents take %d bytes of status, want %d at most", n, len(status), most)
		}
		if err := b.admin.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		reader := inventory.Store{Operator: b.operator}
		if err := reader.Load(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
		byName := func(a, b api.InventoryItem) int { return strings.Compare(a.Name, b.Name) }
		if diff := cmp.Diff(slices.SortedFunc(slices.Values(items), byName), slices.SortedFunc(slices.Values(o.Status.Inventory), byName)); diff != "" {
			t.Errorf("%d dependents are not the same when they are read: %.500s", n, diff)
		}
	}
}

// manyDependents observes the status of a component with many dependents, which are in ConfigMaps: the status
// takes less than 50 bytes for each.
func manyDependents(t *testing.T) {
	t.Parallel()
	n := 60
	if os.Getenv("TRIMTAB_DEEP") != "" {
		n = 2000
	}
	b := newBench(t, func(o *options) {
		o.Inventory = component.InventoryOptions{ReadableUpTo: 20, InlineUpTo: 1000}.WithShards(n / 2)
	})
	b.create(manyMaps(n, 0)...)
	status, err := json.Marshal(b.recorded(n, sharded).Status)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d dependents: %d bytes of status", n, len(status))
	if len(status) > 50*n {
		t.Errorf("%d dependents take %d bytes of status, want %d at most", n, len(status), 50*n)
	}
}

// TestDamagedSibling: while the inventory of a component cannot be read, it may have taken over what another one
// is about to delete. The other one waits, and names it.
func TestDamagedSibling(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *options) { o.Inventory = component.InventoryOptions{ReadableUpTo: 1} })
	b.create(configMap("a1", "1"), configMap("a2", "1"))
	b.ready()
	b.createAs("b", configMap("b1", "1"), configMap("b2", "1"))
	o := b.readyAs("b")
	b.stop()
	whole := o.Status.CompactInventory
	o.Status.CompactInventory = "AAAA" + whole[4:]
	if err := b.admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.delete()
	b.start()
	said := b.await("told what it waits for", func(o *bundle.Bundle) bool {
		return strings.Contains(o.Status.Message, "component "+b.namespace+"/b ")
	}).Status.Message
	if strings.Contains(said, "remove") {
		t.Errorf("the message %q says what to do with the inventory of another component", said)
	}
	repaired := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"compactInventory":%q}}`, whole))
	if err := b.admin.Status().Patch(t.Context(), o, repaired); err != nil {
		t.Fatal(err)
	}
	b.gone()
}

package component_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trimtab-dev/trimtab/component/internal/inventory"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// storing is a component whose inventory two processes store.
type storing struct {
	*bench

	obj *bundle.Bundle
}

// process returns a store of another process, in which a ConfigMap has at most two items.
func (s storing) process() *inventory.Store {
	return &inventory.Store{Operator: s.operator, Limits: inventory.Limits{Readable: 1, Inline: 1, Shard: 2}}
}

// owner is the component as the API server has it.
func (s storing) owner(c client.Client) inventory.Owner {
	s.t.Helper()
	now := &bundle.Bundle{}
	if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(s.obj), now); err != nil {
		s.t.Fatal(err)
	}
	return inventory.Owner{Object: now, Status: now.GetStatus(), Live: c, Client: c, Log: logr.Discard()}
}

func (s storing) save(process *inventory.Store, o inventory.Owner, items int) {
	s.t.Helper()
	before := inventory.FormOf(o.Status)
	o.Status.Inventory = recordedItems(items)
	if err := process.Save(s.t.Context(), o, before); err != nil {
		s.t.Fatal(err)
	}
}

func (s storing) load(process *inventory.Store, o inventory.Owner) {
	s.t.Helper()
	if err := process.Load(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s storing) write(o inventory.Owner) {
	s.t.Helper()
	if err := s.admin.Status().Update(s.t.Context(), o.Object); err != nil {
		s.t.Fatal(err)
	}
}

// newStoring returns a component with an inventory of 8 items in ConfigMaps, and the process that wrote it.
func newStoring(t *testing.T) (storing, *inventory.Store) {
	t.Helper()
	b := prepareBench(t)
	s := storing{b, b.create()}
	first := s.process()
	o := s.owner(b.admin)
	s.save(first, o, 8)
	s.write(o)
	return s, first
}

// TestSweepOfShards: which ConfigMaps a process deletes.
func TestSweepOfShards(t *testing.T) {
	t.Parallel()
	t.Run("not those of the new leader", func(t *testing.T) {
		t.Parallel()
		s, _ := newStoring(t)
		o := s.owner(s.admin)
		s.save(s.process(), o, 9) // and is about to write the status
		s.load(s.process(), s.owner(s.admin))
		s.write(o)
		if got := s.items(s.await("written", sharded)); len(got) != 9 {
			t.Errorf("%d items, want 9", len(got))
		}
	})
	t.Run("those that a process has left when it was killed, after a while", func(t *testing.T) {
		t.Parallel()
		s, _ := newStoring(t)
		s.save(s.process(), s.owner(s.admin), 9) // killed
		next := s.process()
		s.load(next, s.owner(s.admin))
		next.Grace = 1
		s.load(next, s.owner(s.admin))
		if diff := cmp.Diff(slices.Sorted(slices.Values(s.owner(s.admin).Status.InventoryShards)), s.shards()); diff != "" {
			t.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	})
	t.Run("not another one of the same name", func(t *testing.T) {
		t.Parallel()
		s, first := newStoring(t)
		o := s.owner(s.admin)
		old := o.Status.InventoryShards[0]
		s.save(first, o, 9)
		s.write(o)
		again := s.live(old)
		s.destroy(old)
		again.UID, again.ResourceVersion = "", ""
		if err := s.admin.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		s.load(first, s.owner(s.admin))
		s.live(old)
	})
	t.Run("it is not allowed to", func(t *testing.T) {
		t.Parallel()
		s, first := newStoring(t)
		o := s.owner(s.admin)
		s.save(first, o, 9)
		s.write(o)
		tries := 0
		refusing := interceptor.NewClient(s.admin, interceptor.Funcs{
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				tries++
				return errors.New("not today")
			},
		})
		for range 3 {
			o := s.owner(refusing)
			s.load(first, o)
			if got := len(o.Status.Inventory); got != 9 {
				t.Errorf("%d items, want 9", got)
			}
			if first.Obsolete(o.GetUID()) {
				t.Error("the component is woken at once")
			}
		}
		if tries == 0 {
			t.Error("nothing was deleted")
		}
		if all := len(o.Status.InventoryShards) + tries; len(s.shards()) != all {
			t.Errorf("%d ConfigMaps, want %d, and one attempt for each that is left", len(s.shards()), all)
		}
	})
}

// TestShardWrittenAgain: a ConfigMap is missing, and the process knows what it had, although its last status was
// not written.
func TestShardWrittenAgain(t *testing.T) {
	t.Parallel()
	s, first := newStoring(t)
	o := s.owner(s.admin)
	before, names := inventory.FormOf(o.Status), o.Status.InventoryShards
	s.load(first, o)
	o.Status.Inventory = slices.Clone(o.Status.Inventory)
	o.Status.Inventory[0].Status = "InProgress"
	if err := first.Save(t.Context(), o, before); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(names, func(name string) bool { return slices.Contains(o.Status.InventoryShards, name) })
	s.destroy(names[at])
	now := s.owner(s.admin)
	s.load(first, now)
	if got := len(now.Status.Inventory); got != 8 {
		t.Errorf("%d items, want 8", got)
	}
	s.live(names[at])
}

// TestShardDeleted: somebody deletes a ConfigMap, and then the inventory returns to what it had.
func TestShardDeleted(t *testing.T) {
	t.Parallel()
	s, first := newStoring(t)
	o := s.owner(s.admin)
	names := o.Status.InventoryShards
	s.load(first, o)
	items := o.Status.Inventory
	s.destroy(names[0])
	s.save(first, o, 9)
	o.Status.Inventory = slices.Clone(items)
	if err := first.Save(t.Context(), o, inventory.Form{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, o.Status.InventoryShards); diff != "" {
		t.Fatalf("ConfigMaps (-want +got):\n%s", diff)
	}
	s.live(names[0])
}

// TestShardsOfTerminatingNamespace: ConfigMaps cannot be created in a namespace that is being deleted.
func TestShardsOfTerminatingNamespace(t *testing.T) {
	t.Parallel()
	s, first := newStoring(t)
	if err := s.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	o := s.owner(s.admin)
	s.save(first, o, 7)
	s.write(o)
	s.load(first, s.owner(s.admin)) // deletes the ConfigMaps
	now := s.owner(s.admin)
	s.load(s.process(), now)
	if got := len(now.Status.Inventory); got != 7 {
		t.Errorf("%d items, want 7", got)
	}
	s.save(first, now, 6)
	if now.Status.CompactInventory == "" || len(now.Status.InventoryShards) > 0 {
		t.Errorf("ConfigMaps are named, %d, or the inventory is not in the status", len(now.Status.InventoryShards))
	}
}

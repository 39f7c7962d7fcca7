package component

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/inventory"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/loop"
)

// InventoryOptions say how the inventories of components are stored. [api.ComponentStatus.Items] reads all
// forms.
type InventoryOptions struct {
	// ReadableUpTo is the largest number of dependents that status.inventory lists. Beyond that,
	// status.compactInventory lists them in a fifth of the space. Zero means 500.
	ReadableUpTo int
	// InlineUpTo is the largest size of status.compactInventory in bytes. Beyond that, the inventory is in
	// ConfigMaps in the component's namespace, which status.inventoryShards names. Zero means 300 KiB,
	// about 5,000 dependents. A negative value means that no ConfigMaps are used and that the generated role
	// contains no permission for them. Without ConfigMaps, and without a namespace, a component can have
	// about 20,000 dependents.
	InlineUpTo int

	// shard is about how many items a ConfigMap has.
	shard int
	// grace is how long ConfigMaps that another process has left are kept.
	grace time.Duration
}

func (o InventoryOptions) limits() inventory.Limits {
	return inventory.Limits{Readable: o.ReadableUpTo, Inline: o.InlineUpTo, Shard: o.shard, Grace: o.grace}
}

// needs are the permissions for ConfigMaps with inventories.
func (o InventoryOptions) needs() []loop.Need {
	if o.InlineUpTo < 0 {
		return nil
	}
	return []loop.Need{{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}}
}

// watchInventories has the ConfigMaps with inventories watched.
func (w *worker[T]) watchInventories(mgr manager.Manager, wake func(...types.NamespacedName)) error {
	if w.options.Inventory.InlineUpTo < 0 {
		return nil
	}
	kind, err := apiutil.GVKForObject(cached.New[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	config := rest.CopyConfig(mgr.GetConfig())
	config.NegotiatedSerializer = nil
	c, err := metadata.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	has := func(ctx context.Context, r client.Reader, key types.NamespacedName, uid types.UID) (bool, error) {
		obj := cached.New[T]()
		err := r.Get(ctx, key, obj)
		return err == nil && obj.GetUID() == uid, client.IgnoreNotFound(err)
	}
	w.shards = &inventory.Watch{
		Store: &w.inventories, Kind: kind.GroupKind(), Metadata: c, Client: mgr.GetClient(), Log: mgr.GetLogger(),
		Wake: func(name types.NamespacedName) { wake(name) },
		Exists: func(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
			switch found, err := has(ctx, mgr.GetCache(), key, uid); {
			case err != nil: // a cache knows no other
				return false, inventory.ErrElsewhere
			case found:
				return true, nil
			}
			return has(ctx, mgr.GetAPIReader(), key, uid)
		},
	}
	return mgr.Add(w.shards)
}

// owner is the component as its inventory is kept.
func (p *pass[T]) owner() inventory.Owner {
	return inventory.Owner{Object: p.obj, Status: p.obj.GetStatus(), Live: p.run.Live(), Client: p.run.Client(), Log: p.run.Log()}
}

// load makes the inventory readable for this pass. If it cannot be read, nothing is done. ConfigMaps may be
// deleted before a component that is being deleted: then its inventory is what is left of it, and the other
// dependents are found as those of a lost inventory.
func (p *pass[T]) load(ctx context.Context) error {
	form := inventory.FormOf(p.obj.GetStatus())
	if p.shards != nil {
		p.shards.Use(p.obj.GetNamespace()) //nolint:contextcheck // a watch outlives the pass that asks for it
	}
	err := p.inventories.Load(ctx, p.owner())
	if err != nil && errors.Is(err, inventory.ErrLost) && (p.obj.GetDeletionTimestamp() != nil || p.run.Vanished()) {
		p.lostInventory = true
		err = p.salvage(ctx)
	}
	if err != nil {
		form.Restore(p.obj.GetStatus())
		return err
	}
	p.form = &form
	return nil
}

// salvage makes readable what is left of the inventory.
func (p *pass[T]) salvage(ctx context.Context) error {
	status := p.obj.GetStatus()
	shards := status.InventoryShards
	inventory.Form{}.Restore(status)
	owner := p.owner()
	for _, name := range shards {
		owner.Status = &api.ComponentStatus{InventoryShards: []string{name}}
		items, err := p.inventories.Items(ctx, owner)
		if err != nil && !errors.Is(err, inventory.ErrLost) {
			return err
		}
		status.Inventory = append(status.Inventory, items...)
	}
	return nil
}

// save gives the inventory the form in which it is written. failed is how the pass ended.
func (p *pass[T]) save(ctx context.Context, failed error) error {
	if p.form == nil {
		return failed
	}
	p.items = p.obj.GetStatus().Inventory
	if p.lostInventory { // it can still be restored
		p.form.Restore(p.obj.GetStatus())
		return failed
	}
	err := p.inventories.Save(ctx, p.owner(), *p.form)
	if err == nil && p.inventories.Obsolete(p.obj.GetUID()) && p.engine.Wake != nil {
		p.engine.Wake(client.ObjectKeyFromObject(p.obj)) // they are deleted when the status is written
	}
	if err == nil {
		p.warn("InventoryDeleted", p.inventories.Restored(p.obj.GetUID()))
		return failed
	}
	return errors.Join(failed, err)
}

// itemsOf returns the inventory of a component as it was read.
func (p *pass[T]) itemsOf(ctx context.Context, obj T) ([]api.InventoryItem, error) {
	owner := p.owner()
	owner.Object, owner.Status = obj, obj.GetStatus()
	return p.inventories.Items(ctx, owner)
}

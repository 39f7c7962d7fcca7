package inventory

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Limits say up to which size a form is used.
type Limits struct {
	// Readable is the number of items that are kept as they are. Zero means 500.
	Readable int
	// Inline is the number of bytes that a compact form may have in the status. Zero means 300 KiB; a
	// negative value means no limit.
	Inline int
	// Shard is about how many items a ConfigMap has. Zero means 5,000.
	Shard int
}

func (l Limits) readable() int { return or(l.Readable, 500) }
func (l Limits) inline() int   { return or(l.Inline, 300<<10) }
func (l Limits) shard() int    { return or(l.Shard, 5000) }

func or(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

// Store loads and saves the inventories of the components of one operator.
type Store struct {
	Limits
	// Operator is its name, the prefix of the label of ConfigMaps.
	Operator string

	mu    sync.Mutex
	known map[types.UID]*known
}

// known is what is known of the inventory of a component.
type known struct {
	// compact and shards are the form that was read or written last, and items what it says. They are
	// zero if it is readable.
	compact string
	shards  []string
	items   []api.InventoryItem
	// listed: existing are all ConfigMaps that the component has.
	listed   bool
	existing map[string]bool
}

// Owner is the component that a call is about.
type Owner struct {
	client.Object

	Status *api.ComponentStatus
	// Live reads from the API server, and Client writes.
	Live   client.Reader
	Client client.Client
}

// componentObject is a component.
type componentObject interface {
	client.Object
	api.ComponentObject
}

// of returns what is known of a component.
func (s *Store) of(uid types.UID) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[types.UID]*known{}
	}
	k := s.known[uid]
	if k == nil {
		k = &known{existing: map[string]bool{}}
		s.known[uid] = k
	}
	return k
}

// Forget drops what is known of a component that is gone.
func (s *Store) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, uid)
}

// Items returns the items of a status, which may be that of any component.
func (s *Store) Items(ctx context.Context, o Owner) ([]api.InventoryItem, error) {
	return o.Status.Items(func(name string) ([]byte, error) { return s.read(ctx, o, name) })
}

// Form is how an inventory is written in a status.
type Form struct {
	items   []api.InventoryItem
	compact string
	shards  []string
}

// FormOf returns the form that a status has.
func FormOf(s *api.ComponentStatus) Form {
	return Form{items: s.Inventory, compact: s.CompactInventory, shards: s.InventoryShards}
}

// Restore gives a status this form.
func (f Form) Restore(s *api.ComponentStatus) {
	s.Inventory, s.CompactInventory, s.InventoryShards = f.items, f.compact, f.shards
}

// Load makes the inventory of a component readable, in the memory of the process alone. [Store.Save] is its
// counterpart. Nothing is read and decoded that the process knows. ConfigMaps that are no longer needed are
// deleted.
func (s *Store) Load(ctx context.Context, o Owner) error {
	compact, shards := o.Status.CompactInventory, o.Status.InventoryShards
	k := s.peek(o.GetUID())
	if k == nil && compact == "" && len(shards) == 0 {
		return nil
	}
	k = s.of(o.GetUID())
	used := shards
	if compact != "" || len(o.Status.Inventory) > 0 { // the ConfigMaps are left over from an earlier form
		used = nil
		for _, name := range shards {
			k.existing[name] = true
		}
	}
	items := o.Status.Inventory
	if compact == "" && len(used) == 0 {
		k.compact, k.shards, k.items = "", nil, nil
	} else {
		if k.items == nil || k.compact != compact || !slices.Equal(k.shards, used) {
			read, err := s.Items(ctx, o)
			if err != nil {
				return err
			}
			k.compact, k.shards, k.items = compact, used, read
		}
		items = k.items
	}
	Form{items: items}.Restore(o.Status)
	return s.sweep(ctx, o, k, shards)
}

// Save chooses the form in which the inventory of a component is written. ConfigMaps are written first, and those
// that are left over are named until they are gone. If something fails, the status gets the form that it had
// before.
func (s *Store) Save(ctx context.Context, o Owner, before Form) error {
	items := o.Status.Inventory
	k := s.peek(o.GetUID())
	if k == nil && len(items) <= s.readable() {
		return nil
	}
	k = s.of(o.GetUID())
	next, err := s.form(ctx, o, k, items)
	if err != nil {
		before.Restore(o.Status)
		return err
	}
	k.compact, k.shards, k.items = next.compact, next.shards, items
	if next.items != nil || len(items) == 0 {
		k.items = nil
	}
	if left := slices.Sorted(maps.Keys(k.existing)); len(next.shards) == 0 && len(left) > 0 {
		if next.shards = left; len(items) == 0 { // or else they would be the inventory
			data, err := api.EncodeInventory(nil)
			if err != nil {
				before.Restore(o.Status)
				return err
			}
			next.compact = base64.StdEncoding.EncodeToString(data)
		}
	}
	next.Restore(o.Status)
	return nil
}

// form returns the form in which items are written, and writes ConfigMaps.
func (s *Store) form(ctx context.Context, o Owner, k *known, items []api.InventoryItem) (Form, error) {
	switch {
	case len(items) <= s.readable():
		return Form{items: items}, nil
	case same(items, k.items):
		return Form{compact: k.compact, shards: k.shards}, nil
	}
	data, err := api.EncodeInventory(items)
	if err != nil {
		return Form{}, err
	}
	text := base64.StdEncoding.EncodeToString(data)
	if limit := s.inline(); limit < 0 || len(text) <= limit || o.GetNamespace() == "" {
		return Form{compact: text}, nil
	}
	names, err := s.write(ctx, o, k, items)
	return Form{shards: names}, err
}

// peek returns what is known of a component, or nil.
func (s *Store) peek(uid types.UID) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[uid]
}

// Obsolete reports whether a component has ConfigMaps that are not needed once its status is written.
func (s *Store) Obsolete(component types.UID) bool {
	k := s.peek(component)
	return k != nil && len(k.obsolete()) > 0
}

// obsolete are the ConfigMaps that are not used.
func (k *known) obsolete() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.existing)), func(name string) bool { return slices.Contains(k.shards, name) })
}

// same reports whether two lists are one.
func same(a, b []api.InventoryItem) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// write writes items into ConfigMaps and returns their names. Which ConfigMap an item is in depends on its key
// and on how many there are, so that a change of one item changes one ConfigMap.
func (s *Store) write(ctx context.Context, o Owner, k *known, items []api.InventoryItem) ([]string, error) {
	if err := s.list(ctx, o, k); err != nil {
		return nil, err
	}
	parts := 1
	for parts*s.shard() < len(items) {
		parts *= 2
	}
	split := make([][]api.InventoryItem, parts)
	for _, item := range items {
		h := fnv.New32a()
		_, _ = h.Write([]byte(item.Key())) // a hash never fails
		at := int(h.Sum32() % uint32(parts))
		split[at] = append(split[at], item)
	}
	var names []string
	for _, part := range split {
		if len(part) == 0 {
			continue
		}
		data, err := api.EncodeInventory(part)
		if err != nil {
			return nil, err
		}
		name := s.name(o, data)
		if names = append(names, name); k.existing[name] {
			continue
		}
		if err := s.create(ctx, o, name, data); err != nil {
			return nil, err
		}
		k.existing[name] = true
	}
	return names, nil
}

// name is that of the ConfigMap with some data. It depends on nothing else: the same name is the same data.
func (s *Store) name(o Owner, data []byte) string {
	sum := sha256.Sum256(append([]byte(s.Operator+" "+string(o.GetUID())+" "), data...))
	name := o.GetName()
	if len(name) > 200 {
		name = strings.TrimRight(name[:200], ".-")
	}
	return name + "-inventory-" + hex.EncodeToString(sum[:10])
}

func (s *Store) label() string { return s.Operator + "/inventory-of" }

func (s *Store) create(ctx context.Context, o Owner, name string, data []byte) error {
	kind, err := o.Client.GroupVersionKindFor(o.Object)
	if err != nil {
		return err
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: name, Labels: map[string]string{s.label(): string(o.GetUID())},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.GetName(), UID: o.GetUID(),
			}},
		},
		Immutable: new(true), BinaryData: map[string][]byte{api.InventoryKey: data},
	}
	err = o.Client.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) { // of a process that was killed
		_, err = s.read(ctx, o, name)
	}
	if err != nil {
		return fmt.Errorf("write the inventory: %w", err)
	}
	return nil
}

// read returns the data of a ConfigMap, which must be that of its name.
func (s *Store) read(ctx context.Context, o Owner, name string) ([]byte, error) {
	m := &corev1.ConfigMap{}
	err := o.Live.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	data := m.BinaryData[api.InventoryKey]
	if err == nil && m.DeletionTimestamp == nil && s.name(o, data) == name {
		return data, nil
	}
	return nil, &api.InventoryError{Where: "ConfigMap " + o.GetNamespace() + "/" + name, Err: ErrLost}
}

// list finds out once which ConfigMaps a component has.
func (s *Store) list(ctx context.Context, o Owner, k *known) error {
	if k.listed {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := o.Live.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{s.label(): string(o.GetUID())})
	if err != nil {
		return fmt.Errorf("list the ConfigMaps of the inventory: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			k.existing[list.Items[i].Name] = true
		}
	}
	k.listed = true
	return nil
}

// sweep deletes ConfigMaps that the component does not refer to: not in the status that was loaded, and not in
// the one that the API server has. A process that was the leader once may have an old one.
func (s *Store) sweep(ctx context.Context, o Owner, k *known, loaded []string) error {
	if len(k.shards) > 0 {
		if err := s.list(ctx, o, k); err != nil {
			return err
		}
	}
	left := k.obsolete()
	if len(left) == 0 {
		return nil
	}
	now, ok := reflect.TypeAssert[componentObject](reflect.New(reflect.TypeOf(o.Object).Elem()))
	if !ok {
		return nil
	}
	err := o.Live.Get(ctx, client.ObjectKeyFromObject(o.Object), now)
	if err != nil || now.GetUID() != o.GetUID() || !slices.Equal(now.GetStatus().InventoryShards, loaded) {
		return client.IgnoreNotFound(err)
	}
	for _, name := range left {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name}}
		if err := client.IgnoreNotFound(o.Client.Delete(ctx, m)); err != nil {
			return fmt.Errorf("delete ConfigMap %s, which is not needed any more: %w", name, err)
		}
		delete(k.existing, name)
	}
	return nil
}

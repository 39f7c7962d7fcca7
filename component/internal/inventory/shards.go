package inventory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// shard is a ConfigMap that has a part of an inventory.
type shard struct {
	// uid is empty if only the name is known.
	uid types.UID
	// seen is when this process saw it first. It is zero if this process wrote it or a status named it.
	seen time.Time
	// held: it has the finalizer of the operator, and stays until that is removed. dying: it is being deleted, and
	// gone: it was deleted.
	held, dying, gone bool
}

// part is the part of an inventory that one ConfigMap has. It has that name, or one that begins with it.
type part struct {
	name string
	data []byte
}

// parts divides an inventory. Which part an item is in depends on its key and on how many items there are, so
// that a change of one item changes one part.
func (s *Store) parts(o Owner, items []api.InventoryItem) ([]part, error) {
	n := 1
	for n*s.shard() < len(items) {
		n *= 2
	}
	split := make([][]api.InventoryItem, n)
	for _, item := range items {
		h := fnv.New32a()
		_, _ = h.Write([]byte(item.Key())) // a hash never fails
		at := int(h.Sum32() % uint32(n))
		split[at] = append(split[at], item)
	}
	var parts []part
	for _, items := range split {
		if len(items) == 0 {
			continue
		}
		data, err := api.EncodeInventory(items)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{s.name(o, data), data})
	}
	return parts, nil
}

// write writes items into ConfigMaps and returns their names. Which ones exist is asked for before each change,
// because anybody may delete one.
func (s *Store) write(ctx context.Context, o Owner, k *known, items []api.InventoryItem) ([]string, error) {
	parts, err := s.parts(o, items)
	if err != nil {
		return nil, err
	}
	if names := k.names(parts); slices.Equal(names, k.shards) && len(k.damaged()) == 0 {
		return names, nil
	}
	if k.sealed {
		return nil, errSealed
	}
	if err := s.list(ctx, o, k); err != nil {
		return nil, err
	}
	damaged := k.damaged()
	names := make([]string, 0, len(parts))
	for _, p := range parts {
		name, err := s.put(ctx, o, k, p)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	for _, name := range damaged {
		k.restored = append(k.restored, fmt.Sprintf("ConfigMap %s/%s with a part of the inventory was deleted; it has been written again", o.GetNamespace(), name))
	}
	return names, nil
}

// put makes sure that there is a ConfigMap with a part, and returns its name.
func (s *Store) put(ctx context.Context, o Owner, k *known, p part) (string, error) {
	for {
		name := k.nameOf(p)
		if m, ok := k.existing[name]; ok && !m.gone {
			return name, nil
		}
		if err := s.create(ctx, o, k, name, p.data); err != nil {
			return "", err
		}
	}
}

// names are those of the ConfigMaps with these parts.
func (k *known) names(parts []part) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = k.nameOf(p)
	}
	return names
}

// nameOf returns the name of the ConfigMap with a part: the one that is used, or else the first that is not taken by
// one that is being deleted, or may be soon. Where none can be created, one that is being deleted will do.
func (k *known) nameOf(p part) string {
	for _, name := range k.shards {
		if m := k.existing[name]; isNameOf(name, p.name) && (!m.dying || k.sealed && !m.gone) {
			return name
		}
	}
	name := p.name
	for i := 2; ; i++ {
		if m, exists := k.existing[name]; !exists || m.gone || m.held && !m.dying {
			return name
		}
		name = fmt.Sprintf("%s-%d", p.name, i)
	}
}

// isNameOf reports whether a ConfigMap may have the contents after which a part is named.
func isNameOf(name, part string) bool { return name == part || strings.HasPrefix(name, part+"-") }

// damaged are the ConfigMaps of the inventory that are being deleted or gone.
func (k *known) damaged() []string {
	return slices.DeleteFunc(slices.Clone(k.shards), func(name string) bool {
		m := k.existing[name]
		return !m.gone && (!m.dying || k.sealed)
	})
}

// again returns the items of the status of a component. A ConfigMap that is missing is written again if the
// process knows what it had.
func (s *Store) again(ctx context.Context, o Owner, k *known) ([]api.InventoryItem, error) {
	return o.Status.Items(func(name string) ([]byte, error) {
		data, m, err := s.read(ctx, o, name)
		if err == nil {
			k.existing[name] = m
		}
		if len(k.items) == 0 || !errors.Is(err, ErrLost) {
			return data, err
		}
		parts, failed := s.parts(o, k.items)
		if failed != nil {
			return nil, failed
		}
		at := slices.IndexFunc(parts, func(p part) bool { return isNameOf(name, p.name) })
		if at < 0 {
			return nil, err
		}
		err = s.create(ctx, o, k, name, parts[at].data)
		if refusesNew(err, o) {
			k.sealed, k.existing[name], err = true, shard{gone: true}, nil
		}
		return parts[at].data, err
	})
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

// create creates a ConfigMap. If there is one with that name and those contents, of a process that was killed, that
// one is noted.
func (s *Store) create(ctx context.Context, o Owner, k *known, name string, data []byte) error {
	if k.sealed {
		return errSealed
	}
	kind, err := o.Client.GroupVersionKindFor(o.Object)
	if err != nil {
		return err
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: name, Labels: map[string]string{s.label(): string(o.GetUID())},
			Finalizers: []string{s.finalizer()},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.GetName(), UID: o.GetUID(),
			}},
		},
		Immutable: new(true), BinaryData: map[string][]byte{api.InventoryKey: data},
	}
	err = o.Client.Create(ctx, m)
	if err == nil {
		k.existing[name] = s.shardOf(m)
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		var found shard
		if _, found, err = s.read(ctx, o, name); err == nil {
			k.existing[name] = found
			return nil
		}
	}
	return fmt.Errorf("write the inventory: %w", err)
}

// read returns the data of a ConfigMap, which must be that of its name. One that is being deleted will do.
func (s *Store) read(ctx context.Context, o Owner, name string) ([]byte, shard, error) {
	m := &corev1.ConfigMap{}
	err := o.Live.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, shard{}, fmt.Errorf("read the inventory: %w", err)
	}
	data := m.BinaryData[api.InventoryKey]
	if err == nil && isNameOf(name, s.name(o, data)) {
		return data, s.shardOf(m), nil
	}
	return nil, shard{}, &api.InventoryError{Where: "ConfigMap " + o.GetNamespace() + "/" + name, Err: ErrLost}
}

// list finds out which ConfigMaps a component has.
func (s *Store) list(ctx context.Context, o Owner, k *known) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := o.Live.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{s.label(): string(o.GetUID())})
	if err != nil {
		return fmt.Errorf("list the ConfigMaps of the inventory: %w", err)
	}
	existing := make(map[string]shard, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		now, named := s.shardOf(m), slices.Contains(k.shards, m.Name)
		if now.dying && !now.held && !named { // it goes by itself, or others hold it
			continue
		}
		before, known := k.existing[m.Name]
		if now.seen = before.seen; !known && !named {
			now.seen = time.Now()
		}
		existing[m.Name] = now
	}
	for _, name := range k.shards {
		if _, ok := existing[name]; !ok {
			existing[name] = shard{gone: true}
		}
	}
	k.listed, k.existing = true, existing
	return nil
}

// afterFailure is how long nothing is deleted after that has failed.
const afterFailure = time.Minute

// tidy deletes what is not needed any more. A pass does not depend on it.
func (s *Store) tidy(ctx context.Context, o Owner, k *known, loaded []string) {
	if time.Now().Before(k.pause) {
		return
	}
	if err := s.sweep(ctx, o, k, loaded); err != nil && ctx.Err() == nil {
		k.pause = time.Now().Add(afterFailure)
		o.Log.Error(err, "ConfigMaps of the inventory that are not needed any more are left; this is tried again in a later pass")
	}
}

// sweep deletes ConfigMaps that the component does not refer to: not in the status that was loaded, and not in
// the one that the API server has. A process that was the leader once may have an old one.
func (s *Store) sweep(ctx context.Context, o Owner, k *known, loaded []string) error {
	unlisted := func(name string) bool { return k.existing[name].uid == "" }
	if len(k.shards) > 0 && !k.listed || slices.ContainsFunc(s.obsolete(k), unlisted) {
		if err := s.list(ctx, o, k); err != nil {
			return err
		}
	}
	left := s.obsolete(k)
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
	var failed []error
	for _, name := range left {
		failed = append(failed, s.dropKnown(ctx, o, k, name))
	}
	return errors.Join(failed...)
}

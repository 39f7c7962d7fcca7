package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A ConfigMap with a part of an inventory is created with a finalizer. If somebody deletes it, as the namespace
// controller does, it can still be read until the component has written its items elsewhere, or has no dependents
// any more. The order is always the same: the status no longer names it, and then the finalizer is removed. So
// whatever a status names can be read.

// finalizer is that of ConfigMaps.
func (s *Store) finalizer() string { return s.Operator + "/inventory" }

// shardOf is what is known of a ConfigMap.
func (s *Store) shardOf(m metav1.Object) shard {
	return shard{uid: m.GetUID(), held: slices.Contains(m.GetFinalizers(), s.finalizer()), dying: m.GetDeletionTimestamp() != nil}
}

// dropKnown deletes a ConfigMap of a component, and forgets it.
func (s *Store) dropKnown(ctx context.Context, o Owner, k *known, name string) error {
	if err := s.drop(ctx, o.Client, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, k.existing[name]); err != nil {
		s.spare(k.existing[name].uid)
		k.existing[name] = shard{} // it may have its finalizer or not
		return fmt.Errorf("delete ConfigMap %s: %w", name, err)
	}
	delete(k.existing, name)
	return nil
}

// drop removes the finalizer of a ConfigMap and deletes it. The finalizer goes first: what is left by a process that
// is killed in between goes with its component, whether an operator runs then or not. It is no error if the ConfigMap
// is gone, or another one by now.
func (s *Store) drop(ctx context.Context, c client.Client, name types.NamespacedName, known shard) error {
	s.dropping(known.uid)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	var err error
	if known.held {
		var body []byte
		body, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": known.uid, "$deleteFromPrimitiveList/finalizers": []string{s.finalizer()},
		}})
		if err == nil {
			err = c.Patch(ctx, m, client.RawPatch(types.StrategicMergePatchType, body))
		}
	}
	if err == nil && !known.dying {
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		err = c.Delete(ctx, m, client.Preconditions{UID: new(known.uid)})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Has reports whether a component has ConfigMaps.
func (s *Store) Has(component types.UID) bool {
	k := s.peek(component)
	return k != nil && len(k.left()) > 0
}

// Release deletes all ConfigMaps of a component that has no dependents any more, and whose status says so.
func (s *Store) Release(ctx context.Context, o Owner) error {
	if s.Inline < 0 || o.GetNamespace() == "" {
		return nil
	}
	k := s.of(o.GetUID())
	if err := s.list(ctx, o, k); err != nil {
		return err
	}
	var failed []error
	for _, name := range k.left() {
		failed = append(failed, s.dropKnown(ctx, o, k, name))
	}
	return errors.Join(failed...)
}

// Restored returns which ConfigMaps of a component were written again because somebody had deleted them, a sentence
// each, and forgets it.
func (s *Store) Restored(component types.UID) []string {
	k := s.peek(component)
	if k == nil {
		return nil
	}
	texts := k.restored
	k.restored = nil
	return texts
}

// dropping notes that this process deletes a ConfigMap.
func (s *Store) dropping(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped != nil {
		s.dropped[uid] = true
	}
}

// spare takes back dropping.
func (s *Store) spare(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.dropped, uid)
}

// note takes over what a [Watch] saw of a ConfigMap. It reports whether the component has to know about it.
func (s *Store) note(component types.UID, name string, m shard) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped[m.uid] {
		if m.gone {
			delete(s.dropped, m.uid)
		}
		return false
	}
	if s.noted == nil {
		s.noted = map[types.UID]map[string]shard{}
	}
	if s.noted[component] == nil {
		s.noted[component] = map[string]shard{}
	}
	s.noted[component][name] = m
	return m.dying || m.gone
}

// news returns what was noted of the ConfigMaps of a component since it was asked last.
func (s *Store) news(component types.UID) map[string]shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.noted[component]
	delete(s.noted, component)
	maps.DeleteFunc(news, func(_ string, m shard) bool { return s.dropped[m.uid] })
	return news
}

// learn takes over what was noted of ConfigMaps. named are those that the status names.
func (k *known) learn(news map[string]shard, named []string) {
	for name, m := range news {
		before, known := k.existing[name]
		switch {
		case m.gone && known && before.uid != "" && before.uid != m.uid: // there is another one by now
		case m.gone && slices.Contains(k.shards, name):
			k.existing[name] = m
		case m.gone:
			delete(k.existing, name)
		default:
			if m.seen = before.seen; !known && !slices.Contains(named, name) {
				m.seen = time.Now()
			}
			k.existing[name] = m
		}
	}
}

package projection

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Follow has the version of one object known, which need not be a dependent, and waits until it is. Its users
// are woken when it changes. The error is that of [Cache.Use].
func (c *Cache) Follow(ctx context.Context, user User, kind schema.GroupVersionKind, name types.NamespacedName) error {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	return c.follow(ctx, user, followed(Key{kind.GroupKind(), name}), source{
		kind: mapping.GroupVersionKind, resource: mapping.Resource, metadata: true, transform: versionOf,
	})
}

func followed(key Key) scope {
	return scope{GroupKind: key.GroupKind, namespace: key.Namespace, followed: key.Name}
}

// Followed returns the version of an object, empty if it does not exist, and how far its watch has come. The
// object is not known unless somebody follows it.
func (c *Cache) Followed(key Key) (version, seen string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[followed(key)]
	if w == nil || !w.replaced {
		return "", "", false
	}
	return w.version, w.horizon, true
}

// KeepFollowed notes that a user follows nothing but these objects any more.
func (c *Cache) KeepFollowed(user User, objects []Key) {
	needed := map[scope]bool{}
	for _, key := range objects {
		needed[followed(key)] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, w := range c.watches {
		if s.followed != "" && s.followed != allScalers && w.users[user] && !needed[s] {
			c.release(w, user)
		}
	}
}

// Older reports whether a version is older than another. None is older than any.
func Older(a, b string) bool { return older(a, b) }

// Compare orders keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Group, other.Group), cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// mark is the version of an object on its way from a watch.
type mark struct{ metav1.ObjectMeta }

// GetObjectMeta makes a mark an object to reflectors.
func (m *mark) GetObjectMeta() metav1.Object { return &m.ObjectMeta }

// versionOf keeps the version of an object.
func versionOf(obj any) (any, error) {
	if m, ok := obj.(*mark); ok {
		return m, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("a component's watch got a %T; this is a bug in trimtab", obj)
	}
	return &mark{metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName(), ResourceVersion: m.GetResourceVersion()}}, nil
}

// pointer brings what a stream sees of one object to the cache.
type pointer struct {
	*Cache

	w *watch
}

func (p pointer) replace(objects []any, version string) {
	present := ""
	for _, obj := range objects {
		if m, ok := obj.(*mark); ok {
			present = m.ResourceVersion
		}
	}
	p.point(present, version)
	p.w.done()
}

func (p pointer) add(obj any) {
	if m, ok := obj.(*mark); ok {
		p.point(m.ResourceVersion, m.ResourceVersion)
	}
}

func (p pointer) remove(obj any) {
	if m, ok := obj.(*mark); ok {
		p.point("", m.ResourceVersion)
	}
}

func (p pointer) bookmark(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.reach(version)
}

// point takes over the version of the object, and wakes those who follow it.
func (p pointer) point(present, seen string) {
	p.mu.Lock()
	var names []types.NamespacedName
	if p.watches[p.w.scope] == p.w && p.w.replaced && p.w.version != present {
		for user := range p.w.users {
			names = append(names, user.NamespacedName)
		}
	}
	p.w.version, p.w.replaced = present, true
	p.w.reach(seen)
	p.mu.Unlock()
	if len(names) > 0 {
		p.wake(names...)
	}
}

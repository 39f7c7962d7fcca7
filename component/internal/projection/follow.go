package projection

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// all is what a watch follows that knows no more than when the objects of a kind changed last.
const all = "*"

// Follow has the version of one object known, which need not be a dependent, and waits until it is. Its users
// are woken when it changes. Without a name, these are all objects of the kind in the namespace, or in all if that is
// empty, and the version is that of the last change. The error is that of [Cache.Use].
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
	return scope{GroupKind: key.GroupKind, namespace: key.Namespace, followed: cmp.Or(key.Name, all)}
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

// FollowAPIs follows what adds kinds to the API: all CustomResourceDefinitions and APIServices. If the user may not
// watch them, the API server is not asked again for a while.
func (c *Cache) FollowAPIs(ctx context.Context, user User) error {
	for _, kind := range APIs() {
		s := followed(Key{GroupKind: kind.GroupKind()})
		err := c.denied(s)
		if err == nil {
			err = c.Follow(ctx, user, kind, types.NamespacedName{})
		}
		switch {
		case apierrors.IsForbidden(err):
			c.deny(s, err)
			return err
		case err != nil && !meta.IsNoMatchError(err): // an API server without aggregation has no APIServices
			return err
		}
		c.allow(s)
	}
	return nil
}

// APIKeys are the keys of what FollowAPIs follows.
func APIKeys() []Key {
	var keys []Key
	for _, kind := range APIs() {
		keys = append(keys, Key{GroupKind: kind.GroupKind()})
	}
	return keys
}

// APIs are the kinds of what adds kinds to the API.
func APIs() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	}
}

// APIsChanged reports whether an API was added, changed or removed after a moment.
func (c *Cache) APIsChanged(after time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range APIKeys() {
		if w := c.watches[followed(key)]; w != nil && w.changed.After(after) {
			return true
		}
	}
	return false
}

// FollowsAPIs reports whether a user follows the APIs. Those who may not watch them do not.
func (c *Cache) FollowsAPIs(user User) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range APIKeys() {
		if _, denied := c.denials[followed(key)]; denied {
			return false
		}
	}
	w := c.watches[followed(APIKeys()[0])]
	return w != nil && w.replaced && w.users[user]
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
	if p.w.followed == all {
		present = version
	}
	for _, obj := range objects {
		if m, ok := obj.(*mark); ok && p.w.followed != all {
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
		if p.w.followed == all {
			p.point(m.ResourceVersion, m.ResourceVersion)
			return
		}
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
		p.w.changed = time.Now()
	}
	p.w.version, p.w.replaced = present, true
	p.w.reach(seen)
	p.mu.Unlock()
	if len(names) > 0 {
		p.wake(names...)
	}
}

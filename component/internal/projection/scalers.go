package projection

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// allScalers is what a watch of autoscalers follows, instead of the name of one object.
const allScalers = "*scaled"

// scalersAgain is how long it is not asked again for autoscalers that the user may not list.
const scalersAgain = 10 * time.Minute

func scalerKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
}

// Autoscaled reports whether an autoscaler of the cluster scales an object, whoever made that autoscaler. Its users
// are woken when the answer may have changed. The error is that of [Cache.Use]. If the user may
// not list autoscalers, the API server is not asked again for a while.
func (c *Cache) Autoscaled(ctx context.Context, user User, key Key) (bool, error) {
	mapping, err := c.mapper.RESTMapping(scalerKind().GroupKind(), scalerKind().Version)
	if err != nil {
		return false, err
	}
	src := source{kind: mapping.GroupVersionKind, resource: mapping.Resource, transform: scalerOf}
	for _, namespace := range []string{"", key.Namespace} {
		s := scope{GroupKind: scalerKind().GroupKind(), namespace: namespace, followed: allScalers}
		if err = c.denied(s); err == nil {
			err = c.follow(ctx, user, s, src)
		}
		if err == nil {
			return c.scaled(s, key), nil
		}
		if !apierrors.IsForbidden(err) {
			return false, err
		}
		c.deny(s, err)
	}
	return false, err
}

// denial is when an API server refused a watch of autoscalers, and how.
type denial struct {
	at  time.Time
	err error
}

// denied returns why a watch was refused a short time ago, or nil.
func (c *Cache) denied(s scope) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.denials[s]; time.Since(d.at) < scalersAgain {
		return d.err
	}
	return nil
}

// deny ends a watch that was refused, which would go on asking.
func (c *Cache) deny(s scope, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[s]; w != nil {
		c.end(w)
		c.denials[s] = denial{time.Now(), err}
	}
}

// allow forgets that a watch was refused.
func (c *Cache) allow(s scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.denials, s)
}

// scaled reports whether an autoscaler of a scope scales an object.
func (c *Cache) scaled(s scope, key Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[s]
	if w == nil {
		return false
	}
	for _, target := range w.targets {
		if target == key {
			return true
		}
	}
	return false
}

// KeepAutoscaled notes whether a user needs to know of autoscalers any more.
func (c *Cache) KeepAutoscaled(user User, needed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, w := range c.watches {
		if s.followed == allScalers && w.users[user] && !needed {
			c.release(w, user)
		}
	}
}

// scaler is an autoscaler on its way from a watch.
type scaler struct {
	metav1.ObjectMeta

	target Key
}

// GetObjectMeta makes a scaler an object to reflectors.
func (s *scaler) GetObjectMeta() metav1.Object { return &s.ObjectMeta }

func (s *scaler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// scalerOf keeps what an autoscaler scales.
func scalerOf(obj any) (any, error) {
	if s, ok := obj.(*scaler); ok {
		return s, nil
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a watch of autoscalers got a %T; this is a bug in trimtab", obj)
	}
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "scaleTargetRef")
	target := schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"]).GroupKind()
	return &scaler{
		metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), ResourceVersion: u.GetResourceVersion()},
		Key{target, types.NamespacedName{Namespace: u.GetNamespace(), Name: ref["name"]}},
	}, nil
}

// scalers brings what a stream sees of autoscalers to the cache.
type scalers struct {
	*Cache

	w *watch
}

func (s scalers) replace(objects []any, version string) {
	targets := map[types.NamespacedName]Key{}
	for _, obj := range objects {
		if o, ok := obj.(*scaler); ok {
			targets[o.key()] = o.target
		}
	}
	s.take(version, func(map[types.NamespacedName]Key) map[types.NamespacedName]Key { return targets })
	s.w.done()
}

func (s scalers) add(obj any) {
	if o, ok := obj.(*scaler); ok {
		s.take(o.ResourceVersion, func(targets map[types.NamespacedName]Key) map[types.NamespacedName]Key {
			targets[o.key()] = o.target
			return targets
		})
	}
}

func (s scalers) remove(obj any) {
	if o, ok := obj.(*scaler); ok {
		s.take(o.ResourceVersion, func(targets map[types.NamespacedName]Key) map[types.NamespacedName]Key {
			delete(targets, o.key())
			return targets
		})
	}
}

func (s scalers) bookmark(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.reach(version)
}

// take takes over what autoscalers scale, and wakes those who asked if that changed.
func (s scalers) take(version string, change func(map[types.NamespacedName]Key) map[types.NamespacedName]Key) {
	s.mu.Lock()
	var names []types.NamespacedName
	after := maps.Clone(s.w.targets)
	if after == nil {
		after = map[types.NamespacedName]Key{}
	}
	after = change(after)
	if s.watches[s.w.scope] == s.w && s.w.replaced && !maps.Equal(after, s.w.targets) {
		for user := range s.w.users {
			names = append(names, user.NamespacedName)
		}
	}
	s.w.targets, s.w.replaced = after, true
	s.w.reach(version)
	s.mu.Unlock()
	if len(names) > 0 {
		s.wake(names...)
	}
}

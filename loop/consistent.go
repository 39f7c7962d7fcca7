package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// listWait is how long all lists of a pass may wait, together, for the cache to show what was written for the object.
const listWait = 100 * time.Millisecond

// consistent is [Run.Client]. It notes what it writes, and no read through it returns anything older than that.
type consistent struct {
	client.Client
	live  client.Reader
	views *views
	notes *memory
	// name is the controller's; self is the object of the pass.
	name string
	self target

	mu     sync.Mutex
	waited time.Duration
}

// consistent is the client of a pass over key. It is nil without a cache, where there is nothing to add.
func (c *Controller[T]) consistent(key types.NamespacedName) *consistent {
	if c.views == nil {
		return nil
	}
	return &consistent{
		Client: c.client, live: c.live, views: c.views, notes: c.memory, name: c.name,
		self: target{kind: c.gvk.GroupKind(), key: key},
	}
}

// view notes what the cache holds in any case: the controller's own kind, and what its sources watch.
func (c *Controller[T]) view(all cache.Cache) error {
	if c.options.PlainClient {
		return nil
	}
	c.views = newViews(all)
	c.views.watched(c.client, cached.New[T](), c.gvk)
	for _, s := range c.options.Sources {
		for _, obj := range s.Watches() {
			gvk, err := apiutil.GVKForObject(obj, c.scheme)
			if err != nil {
				return fmt.Errorf("find the kind of a %T that a source watches: %w", obj, err)
			}
			c.views.watched(all, obj, gvk)
		}
	}
	return nil
}

// await returns a [staleError] if the cache does not show yet what earlier passes over an object wrote. If it has lagged
// for too long, this pass reads the kinds in question live.
func (c *Controller[T]) await(ctx context.Context, key types.NamespacedName) error {
	if c.views == nil {
		return nil
	}
	lag := c.memory.unseen(ctx, key, c.views, time.Now())
	if lag == 0 {
		return nil
	}
	staleSkips.WithLabelValues(c.name, c.gvk.Kind).Inc()
	return staleError{lag}
}

// Get implements [client.Reader].
func (k *consistent) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, k.Scheme())
	if err != nil {
		return k.Client.Get(ctx, key, obj, opts...) // which says what is wrong
	}
	t := target{kind: gvk.GroupKind(), key: key}
	known := k.notes.known(k.self.key, t, t == k.self)
	if known.live {
		return k.getLive(ctx, t, obj, opts...)
	}
	err = k.Client.Get(ctx, key, obj, opts...)
	if client.IgnoreNotFound(err) != nil || !k.views.read(ctx, k.Client, key, obj, gvk) {
		return err
	}
	switch {
	case known.nothing():
		return err
	case known.shownBy(obj, err):
		if err == nil {
			k.notes.shown(k.self.key, t)
		}
		return err
	case !known.hidden && (err == nil || !k.views.reached(ctx, idOf(obj, gvk), known.write)) && known.write.copyInto(obj, gvk):
		return nil
	}
	if err = k.getLive(ctx, t, obj, opts...); apierrors.IsNotFound(err) { // others deleted it
		k.notes.shown(k.self.key, t)
	}
	return err
}

// getLive reads an object past the cache. Whoever may list and watch a kind need not have the permission to get its objects;
// without it, the cache has the last word.
func (k *consistent) getLive(ctx context.Context, t target, obj client.Object, opts ...client.GetOption) error {
	liveReads.WithLabelValues(k.name, k.self.kind.Kind).Inc()
	empty(obj)
	err := k.live.Get(ctx, t.key, obj, opts...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	k.notes.shown(k.self.key, t)
	return k.Client.Get(ctx, t.key, obj, opts...)
}

// List implements [client.Reader].
func (k *consistent) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	id, err := itemOf(list, k.Scheme())
	if err != nil {
		return k.Client.List(ctx, list, opts...) // which says what is wrong
	}
	all, live := k.notes.writesOf(k.self.key, id.kind.GroupKind())
	if !live {
		if _, known := k.views.find(id); !known || len(all) == 0 {
			err := k.Client.List(ctx, list, opts...)
			if err != nil || !k.views.listed(ctx, k.Client, list, id, opts) || len(all) == 0 {
				return err
			}
			empty(list)
		}
		if view, _ := k.views.find(id); view == nil || k.wait(ctx, view, all) {
			return k.Client.List(ctx, list, opts...)
		}
	}
	liveReads.WithLabelValues(k.name, k.self.kind.Kind).Inc()
	if err := k.live.List(ctx, list, opts...); err != nil {
		return k.unlisted(err, opts)
	}
	return nil
}

// unlisted explains why a list could not be read live. The API server knows none of the indexes of a cache.
func (k *consistent) unlisted(err error, opts []client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if !apierrors.IsBadRequest(err) || o.FieldSelector == nil {
		return err
	}
	return Outdated(fmt.Errorf("list by %s, an index of the cache, which does not show yet what was written for %s: %w",
		o.FieldSelector, k.self.key, err))
}

// wait waits until a view shows some writes, and reports whether it does.
func (k *consistent) wait(ctx context.Context, v *view, all map[target]write) bool {
	if v.show(ctx, all) {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	began := time.Now()
	defer func() { k.waited += time.Since(began) }()
	limit := time.NewTimer(listWait - k.waited)
	defer limit.Stop()
	tick := time.NewTicker(listWait / 20)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if v.show(ctx, all) {
				return true
			}
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// wrote notes the answer to a write of obj.
func (k *consistent) wrote(ctx context.Context, obj runtime.Object) {
	o, gvk, err := answerOf(obj, k.Scheme())
	if err != nil || o.GetName() == "" {
		return
	}
	k.note(ctx, target{kind: gvk.GroupKind(), key: client.ObjectKeyFromObject(o)}, write{version: o.GetResourceVersion(), uid: o.GetUID(), answer: o, kind: gvk})
}

// note notes a write of t.
func (k *consistent) note(ctx context.Context, t target, w write) {
	w.at = time.Now()
	k.notes.noteWrite(k.self.key, t, w, t == k.self)
	k.notes.sweepLater(ctx, k.self.key, k.views)
}

// Create implements [client.Writer].
func (k *consistent) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := k.Client.Create(ctx, obj, opts...)
	if err == nil && len((&client.CreateOptions{}).ApplyOptions(opts).DryRun) == 0 {
		k.wrote(ctx, obj)
	}
	return err
}

// Update implements [client.Writer].
func (k *consistent) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	err := k.Client.Update(ctx, obj, opts...)
	if err == nil && len((&client.UpdateOptions{}).ApplyOptions(opts).DryRun) == 0 {
		k.wrote(ctx, obj)
	}
	return err
}

// Patch implements [client.Writer].
func (k *consistent) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := k.Client.Patch(ctx, obj, patch, opts...)
	if err == nil && len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) == 0 {
		k.wrote(ctx, obj)
	}
	return err
}

// Apply implements [client.Writer].
func (k *consistent) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := k.Client.Apply(ctx, obj, opts...)
	if err == nil && len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) == 0 {
		k.applied(ctx, obj)
	}
	return err
}

// applied notes the answer to an apply, which is in the configuration.
func (k *consistent) applied(ctx context.Context, obj runtime.ApplyConfiguration) {
	if u, err := configured(obj); err == nil {
		k.wrote(ctx, u)
	}
}

// Delete implements [client.Writer].
func (k *consistent) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	err := k.Client.Delete(ctx, obj, opts...)
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	if err != nil || len(o.DryRun) > 0 {
		return err
	}
	uid := obj.GetUID()
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		uid = *o.Preconditions.UID
	}
	k.deleted(ctx, obj, uid)
	return nil
}

// deleted notes that obj was deleted, or has begun to be.
func (k *consistent) deleted(ctx context.Context, obj client.Object, uid types.UID) {
	gvk, err := apiutil.GVKForObject(obj, k.Scheme())
	if err != nil {
		return
	}
	t := target{kind: gvk.GroupKind(), key: client.ObjectKeyFromObject(obj)}
	if before := k.notes.known(k.self.key, t, false); uid == "" {
		uid = before.write.uid
	}
	k.note(ctx, t, write{deleted: true, uid: uid})
}

// DeleteAllOf implements [client.Writer]. What the cache shows of the objects is noted as deleted; the others cannot
// be known.
func (k *consistent) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	var shown []client.Object
	if len(o.DryRun) == 0 {
		shown = k.views.matching(ctx, obj, k.Scheme(), o.ListOptions)
	}
	err := k.Client.DeleteAllOf(ctx, obj, opts...)
	if err == nil {
		for _, gone := range shown {
			k.deleted(ctx, gone, gone.GetUID())
		}
	}
	return err
}

// Status implements [client.StatusClient].
func (k *consistent) Status() client.SubResourceWriter { return k.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (k *consistent) SubResource(name string) client.SubResourceClient {
	return consistentPart{SubResourceClient: k.Client.SubResource(name), k: k, name: name}
}

// consistentPart writes a part of an object.
type consistentPart struct {
	client.SubResourceClient

	k    *consistent
	name string
}

// Create implements [client.SubResourceWriter]. An eviction deletes; others that can be created are no part of what a
// cache shows.
func (p consistentPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	err := p.SubResourceClient.Create(ctx, obj, part, opts...)
	if err == nil && p.name == "eviction" && len((&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun) == 0 {
		p.k.deleted(ctx, obj, obj.GetUID())
	}
	return err
}

// Update implements [client.SubResourceWriter].
func (p consistentPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	err := p.SubResourceClient.Update(ctx, obj, opts...)
	if o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts); err == nil && len(o.DryRun) == 0 {
		p.wrote(ctx, obj, o.SubResourceBody)
	}
	return err
}

// Patch implements [client.SubResourceWriter].
func (p consistentPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	err := p.SubResourceClient.Patch(ctx, obj, patch, opts...)
	if o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts); err == nil && len(o.DryRun) == 0 {
		p.wrote(ctx, obj, o.SubResourceBody)
	}
	return err
}

// Apply implements [client.SubResourceWriter].
func (p consistentPart) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	err := p.SubResourceClient.Apply(ctx, obj, opts...)
	if o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts); err == nil && len(o.DryRun) == 0 && o.SubResourceBody == nil {
		p.k.applied(ctx, obj)
	}
	return err
}

// wrote notes the answer to a write of a part: obj, unless it is a body such as a Scale, which has the same version.
func (p consistentPart) wrote(ctx context.Context, obj, body client.Object) {
	if body == nil {
		p.k.wrote(ctx, obj)
		return
	}
	if gvk, err := apiutil.GVKForObject(obj, p.k.Scheme()); err == nil && body.GetResourceVersion() != "" {
		p.k.note(ctx, target{kind: gvk.GroupKind(), key: client.ObjectKeyFromObject(obj)}, write{version: body.GetResourceVersion(), uid: obj.GetUID()})
	}
}

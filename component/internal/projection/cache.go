package projection

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/fingerprint"
)

// Options of a [Cache].
type Options struct {
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	Names      Names
	// Changed is called with the owner of an object that changed and not by a write that was
	// noted. It must return at once.
	Changed func(owner string, key Key)
}

// Cache knows the live objects of one operator in one cluster.
type Cache struct {
	informers cache.Cache
	mapper    meta.RESTMapper
	names     Names
	changed   func(owner string, key Key)
	// registering holds a value while a kind is registered.
	registering chan struct{}

	mu      sync.Mutex
	kinds   map[schema.GroupKind]toolscache.ResourceEventHandlerRegistration
	objects map[Key]known
	// horizon is how far the informer of a kind has come: the newest version that it saw.
	horizon map[schema.GroupKind]string

	refusals refusals
}

// known is what is known of one object.
type known struct {
	// seen is what the informer saw last; nil if it sees none.
	seen *Object
	// noted is the answer to our own last write, as long as the informer is behind it.
	noted *Object
	// gone is the uid of the object that we deleted, and goneAt its last version that was known, as long
	// as the informer is behind the deletion.
	gone   types.UID
	goneAt string
}

// New makes a cache, which works once it is started.
func New(o Options) (*Cache, error) {
	ours, err := labels.NewRequirement(o.Names.OwnerLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("label of the operator: %w", err)
	}
	c := &Cache{
		mapper: o.Mapper, names: o.Names, changed: o.Changed,
		kinds: map[schema.GroupKind]toolscache.ResourceEventHandlerRegistration{}, objects: map[Key]known{},
		horizon: map[schema.GroupKind]string{}, registering: make(chan struct{}, 1),
	}
	c.informers, err = cache.New(o.Config, cache.Options{
		HTTPClient: o.HTTPClient, Scheme: runtime.NewScheme(), Mapper: o.Mapper, DefaultWatchErrorHandler: c.refusals.handle,
		DefaultLabelSelector: labels.NewSelector().Add(*ours), DefaultTransform: o.Names.transform,
	})
	return c, err
}

// Start runs the informers until ctx ends.
func (c *Cache) Start(ctx context.Context) error { return c.informers.Start(ctx) }

// NeedLeaderElection reports that watching needs none.
func (c *Cache) NeedLeaderElection() bool { return false }

// Watch sees to it that the objects of a kind are known, and waits until they are. Nothing is known of a
// kind that the API server does not serve; the error is then a NoMatch one. If the user may not watch the
// kind, the error is the API server's.
func (c *Cache) Watch(ctx context.Context, kind schema.GroupVersionKind) error {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version) // may ask the API server
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	registration, err := c.register(ctx, kind)
	if err != nil {
		return err
	}
	resource := mapping.Resource.GroupResource()
	synced := registration.HasSyncedChecker()
	for {
		refused, err := c.refusals.of(resource, registration.HasSynced())
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if registration.HasSynced() {
			return nil
		}
		select {
		case <-synced.Done():
		case <-refused:
		case <-ctx.Done():
			return fmt.Errorf("wait for the objects of kind %s: %w", kind.Kind, ctx.Err())
		}
	}
}

// register starts the informer of a kind unless it runs. One kind is registered at a time, without the lock
// under which objects are looked up: controller-runtime may ask the API server.
func (c *Cache) register(ctx context.Context, kind schema.GroupVersionKind) (toolscache.ResourceEventHandlerRegistration, error) {
	if r, ok := c.registered(kind.GroupKind()); ok {
		return r, nil
	}
	select {
	case c.registering <- struct{}{}:
		defer func() { <-c.registering }()
	case <-ctx.Done():
		return nil, fmt.Errorf("watch %s: %w", kind.Kind, ctx.Err())
	}
	if r, ok := c.registered(kind.GroupKind()); ok {
		return r, nil
	}
	informer, err := c.informers.GetInformer(ctx, prototype(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { c.see(obj, initial) },
		UpdateFunc: func(_, obj any) { c.see(obj, false) },
		DeleteFunc: c.unsee,
	})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind.GroupKind()] = r
	return r, nil
}

func (c *Cache) registered(kind schema.GroupKind) (toolscache.ResourceEventHandlerRegistration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.kinds[kind]
	return r, ok
}

// prototype is an object of a kind as its informer decodes it.
func prototype(kind schema.GroupVersionKind) client.Object {
	if MetadataOnly(kind.GroupKind()) {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(kind)
		return m
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// Get returns what is known of an object. It knows of our own writes at once.
func (c *Cache) Get(key Key) (Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.objects[key].latest(); o != nil {
		return *o, true
	}
	return Object{}, false
}

// OwnedBy returns what is known of the objects whose owner annotation names an owner and the object itself.
func (c *Cache) OwnedBy(owner string) map[Key]Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[Key]Object{}
	for key, k := range c.objects {
		o := k.latest()
		if o == nil {
			continue
		}
		if id, _, own, ok := desired.ParseOwner(o.Owner); ok && id == owner && own == (api.InventoryItem{
			Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
		}).Key() {
			out[key] = *o
		}
	}
	return out
}

// latest is the newest of what is known; nil if there is no object.
func (k known) latest() *Object {
	switch {
	case k.noted != nil:
		return k.noted
	case k.seen != nil && k.hides(*k.seen):
		return nil
	}
	return k.seen
}

// hides reports whether an object is gone that the informer sees: it is the one that we deleted, or one
// that had its name before.
func (k known) hides(o Object) bool {
	return k.gone != "" && (o.UID == k.gone || older(o.Version, k.goneAt))
}

// Note takes over the answer to a write of ours, unless the informer has seen it already: the object may
// even be gone again.
func (c *Cache) Note(live *unstructured.Unstructured) Object {
	o := c.names.Of(live)
	key := keyOf(live.GroupVersionKind(), live)
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.objects[key]
	if older(c.horizon[key.GroupKind], o.Version) && (k.noted == nil || !older(o.Version, k.noted.Version)) {
		k.noted, k.gone, k.goneAt = &o, "", ""
		c.objects[key] = k
	}
	return o
}

// NoteGone takes over that the object with a uid is gone after a write of ours. Another object may have
// its name already.
func (c *Cache) NoteGone(key Key, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.objects[key]
	at := ""
	for _, o := range []*Object{k.seen, k.noted} {
		if o != nil && o.UID == uid && older(at, o.Version) {
			at = o.Version
		}
	}
	if at == "" {
		return // nothing is known of it
	}
	if k.noted != nil && k.noted.UID == uid {
		k.noted = nil
	}
	k.gone, k.goneAt = uid, at
	c.objects[key] = k
}

// see takes over what an informer saw.
func (c *Cache) see(obj any, initial bool) {
	e, ok := obj.(*entry)
	if !ok {
		return
	}
	o := e.Object
	c.mu.Lock()
	k := c.objects[e.key]
	before := k.latest()
	k.seen = &o
	if k.noted != nil && !older(o.Version, k.noted.Version) {
		k.noted = nil
	}
	c.reach(e.key, o.Version)
	if !k.hides(o) {
		k.gone, k.goneAt = "", ""
	}
	after := k.latest()
	c.objects[e.key] = k
	c.mu.Unlock()
	if !initial && after != nil && (before == nil || before.differs(*after)) {
		c.tell(e.key, before, after)
	}
}

// unsee takes over that an informer does not see an object any more.
func (c *Cache) unsee(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	e, ok := obj.(*entry)
	if !ok {
		return
	}
	c.mu.Lock()
	k := c.objects[e.key]
	before := k.latest()
	k.seen = nil
	if k.noted != nil && k.noted.UID == e.UID {
		k.noted = nil
	}
	if k.gone == e.UID {
		k.gone, k.goneAt = "", ""
	}
	if c.objects[e.key] = k; k.noted == nil && k.gone == "" {
		delete(c.objects, e.key)
	}
	c.reach(e.key, e.Version)
	c.mu.Unlock()
	c.tell(e.key, before, nil)
}

// reach notes how far the informer of a kind has come.
func (c *Cache) reach(key Key, version string) {
	if older(c.horizon[key.GroupKind], version) {
		c.horizon[key.GroupKind] = version
	}
}

// tell reports a change to the owners.
func (c *Cache) tell(key Key, before, after *Object) {
	owners := map[string]bool{}
	for _, o := range []*Object{before, after} {
		if o != nil && o.Owner != "" && !owners[o.Owner] {
			owners[o.Owner] = true
			c.changed(o.Owner, key)
		}
	}
}

// differs reports whether an object changed in anything that matters to its component.
func (o Object) differs(other Object) bool {
	return o.UID != other.UID || o.Leaving != other.Leaving || o.Owner != other.Owner || o.Digest != other.Digest ||
		o.Print != other.Print || o.Content != other.Content || o.Health != other.Health || o.Leaving && len(o.Finalizers) != len(other.Finalizers) ||
		o.Print.Values == (fingerprint.Hash{}) && o.Version != other.Version
}

// older reports whether version a is older than b; none is older than any.
func older(a, b string) bool {
	if a == "" {
		return b != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

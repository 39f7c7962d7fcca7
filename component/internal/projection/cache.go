package projection

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
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
	// Wake is called with users of a watch who have to ask for it again. It must return at once. Nil
	// means that they are not woken.
	Wake func(...types.NamespacedName)
	// Idle is how long a watch goes on that has no users. Zero means a minute.
	Idle time.Duration
}

// Cache knows the live objects of one operator in one cluster.
type Cache struct {
	mapper  meta.RESTMapper
	names   Names
	changed func(owner string, key Key)
	wake    func(...types.NamespacedName)
	idle    time.Duration
	open    opener

	mu      sync.Mutex
	watches map[scope]*watch
	// narrow are the kinds that the user may not watch in all namespaces.
	narrow map[schema.GroupKind]bool
	// denials are watches of autoscalers that were refused.
	denials map[scope]denial
	// seen is what the watches saw last, by kind.
	seen map[schema.GroupKind]map[types.NamespacedName]*kept
	// ours are our own writes that the watches have not come to yet.
	ours    map[Key]write
	running streams
}

// write is a write of ours. It counts until the watch has come as far: what the watch saw last says more then.
type write struct {
	// noted is the answer to our last write. Out: watches do not see the object in this state, because it
	// has no label of the operator.
	noted *Object
	out   bool
	// gone is the version in which we knew the object that we deleted or released. Nothing counts that is not
	// newer. It is not known whether something newer is the same object: what we released still exists.
	gone string
}

// New makes a cache, which works once it is started.
func New(o Options) (*Cache, error) {
	ours, err := labels.NewRequirement(o.Names.OwnerLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("label of the operator: %w", err)
	}
	open, err := openerOf(o, labels.NewSelector().Add(*ours).String())
	if err != nil {
		return nil, err
	}
	return newCache(o, open), nil
}

func newCache(o Options, open opener) *Cache {
	c := &Cache{
		mapper: o.Mapper, names: o.Names, changed: o.Changed, wake: o.Wake, idle: cmp.Or(o.Idle, time.Minute), open: open,
		watches: map[scope]*watch{}, narrow: map[schema.GroupKind]bool{}, denials: map[scope]denial{},
		seen: map[schema.GroupKind]map[types.NamespacedName]*kept{}, ours: map[Key]write{},
	}
	if c.wake == nil {
		c.wake = func(...types.NamespacedName) {}
	}
	return c
}

// Start runs the watches until ctx ends.
func (c *Cache) Start(ctx context.Context) error {
	c.running.start(ctx)
	<-ctx.Done()
	c.running.wait()
	return nil
}

// NeedLeaderElection reports that watching needs none.
func (c *Cache) NeedLeaderElection() bool { return false }

// Get returns what is known of an object. It knows of our own writes at once.
func (c *Cache) Get(key Key) (Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.latest(key); o != nil {
		return *o, true
	}
	return Object{}, false
}

// OwnedBy returns what is known of the objects whose owner annotation names an owner and the object itself.
func (c *Cache) OwnedBy(owner string) map[Key]Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[Key]Object{}
	take := func(key Key) {
		o := c.latest(key)
		if o == nil {
			return
		}
		if id, _, of, ok := desired.ParseOwner(o.Owner); ok && id == owner && of == key.itemKey() {
			out[key] = *o
		}
	}
	for kind, objects := range c.seen {
		for name := range objects {
			take(Key{kind, name})
		}
	}
	for key := range c.ours {
		take(key)
	}
	return out
}

// latest is the newest of what is known of an object; nil if there is none.
func (c *Cache) latest(key Key) *Object { return c.latestAt(key, c.horizon(key)) }

// latestAt is latest if the watch has come as far as horizon.
func (c *Cache) latestAt(key Key, horizon string) *Object {
	w, seen := c.ours[key], c.lastSeen(key)
	switch {
	case w.noted != nil && older(horizon, w.noted.Version):
		if w.out {
			return nil
		}
		return w.noted
	case seen != nil && w.gone != "" && !older(w.gone, seen.Version):
		return nil
	}
	return seen
}

// lastSeen is what a watch saw last of an object; nil if it sees none.
func (c *Cache) lastSeen(key Key) *Object {
	if k := c.seen[key.GroupKind][key.NamespacedName]; k != nil {
		return k.object(key)
	}
	return nil
}

// settle forgets what the watch of an object has come to of our write to it.
func (c *Cache) settle(key Key) {
	w, ok := c.ours[key]
	if !ok {
		return
	}
	horizon := c.horizon(key)
	if w.noted != nil && !older(horizon, w.noted.Version) {
		w.noted, w.out = nil, false
	}
	if seen := c.lastSeen(key); w.gone != "" && (seen != nil && older(w.gone, seen.Version) || seen == nil && !older(horizon, w.gone)) {
		w.gone = ""
	}
	if c.ours[key] = w; w.noted == nil && w.gone == "" {
		delete(c.ours, key)
	}
}

// settleAll is settle for all objects of a scope.
func (c *Cache) settleAll(s scope) {
	for key := range c.ours {
		if s.covers(key) {
			c.settle(key)
		}
	}
}

// Note takes over the answer to a write of ours, unless the watch has seen it already: the object may even
// be gone again.
func (c *Cache) Note(live *unstructured.Unstructured) Object {
	o := c.names.Of(live)
	key := keyOf(live.GroupVersionKind().GroupKind(), live)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watched(key) {
		return o // there is nothing that would come to it
	}
	w := c.ours[key]
	if !older(o.Version, w.gone) {
		w.gone = "" // it exists
	}
	if w.noted == nil || !older(o.Version, w.noted.Version) {
		_, labelled := live.GetLabels()[c.names.OwnerLabel]
		w.noted, w.out = &o, !labelled
	}
	c.ours[key] = w
	c.settle(key)
	return o
}

// NoteGone takes over that an object is gone after a write of ours, or not ours any more. The version is the
// last one that the caller knew of it. Another object may have its name already.
func (c *Cache) NoteGone(key Key, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watched(key) {
		return
	}
	w := c.ours[key]
	if w.noted != nil && !older(version, w.noted.Version) {
		w.noted, w.out = nil, false
	}
	if older(w.gone, version) {
		w.gone = version
	}
	c.ours[key] = w
	c.settle(key)
}

// see takes over what a watch saw.
func (c *Cache) see(s *watch, e *entry) {
	c.mu.Lock()
	if c.watches[s.scope] != s {
		c.mu.Unlock()
		return // it was stopped
	}
	before := c.latest(e.key)
	c.put(e)
	s.reach(e.object(e.key).Version)
	c.settle(e.key)
	after := c.latest(e.key)
	c.mu.Unlock()
	if after != nil && (before == nil || before.differs(after)) {
		c.tell(e.key, before, after)
	}
}

// put stores what a watch saw of an object.
func (c *Cache) put(e *entry) {
	objects := c.seen[e.key.GroupKind]
	if objects == nil {
		objects = map[types.NamespacedName]*kept{}
		c.seen[e.key.GroupKind] = objects
	}
	objects[e.key.NamespacedName] = e.kept
}

// unsee takes over that a watch does not see an object any more.
func (c *Cache) unsee(s *watch, e *entry) {
	c.mu.Lock()
	if c.watches[s.scope] != s {
		c.mu.Unlock()
		return
	}
	before, last := c.latest(e.key), e.object(e.key)
	c.drop(e.key)
	s.reach(last.Version)
	c.settle(e.key)
	after := c.latest(e.key)
	c.mu.Unlock()
	if before != nil && after == nil {
		c.tell(e.key, before, nil)
	}
}

// drop forgets what a watch saw of an object.
func (c *Cache) drop(key Key) {
	objects := c.seen[key.GroupKind]
	if delete(objects, key.NamespacedName); len(objects) == 0 {
		delete(c.seen, key.GroupKind)
	}
}

// replace takes over all that a watch sees as of a version: when it begins, and after a gap.
func (c *Cache) replace(s *watch, entries []*entry, version string) {
	c.mu.Lock()
	if c.watches[s.scope] != s {
		c.mu.Unlock()
		return
	}
	initial := !s.replaced
	s.replaced = true
	var changes []change
	there := make(map[Key]bool, len(entries))
	behind := s.horizon // until the watch had come as far, our writes counted
	s.reach(version)
	took := func(key Key, before *Object) {
		after := c.latest(key)
		if after == nil && before != nil || after != nil && !initial && (before == nil || before.differs(after)) {
			changes = append(changes, change{key, before, after})
		}
	}
	for _, e := range entries {
		there[e.key] = true
		before := c.latestAt(e.key, behind)
		c.put(e)
		took(e.key, before)
	}
	for _, key := range c.missing(s.scope, there) {
		before := c.latestAt(key, behind)
		c.drop(key)
		took(key, before)
	}
	c.settleAll(s.scope)
	c.mu.Unlock()
	for _, ch := range changes {
		c.tell(ch.key, ch.before, ch.after)
	}
}

type change struct {
	key           Key
	before, after *Object
}

// missing are the objects of a scope that were known and are not there.
func (c *Cache) missing(s scope, there map[Key]bool) []Key {
	var keys []Key
	for name := range c.seen[s.GroupKind] {
		if key := (Key{s.GroupKind, name}); s.covers(key) && !there[key] {
			keys = append(keys, key)
		}
	}
	for key := range c.ours {
		if _, seen := c.seen[key.GroupKind][key.NamespacedName]; !seen && s.covers(key) && !there[key] {
			keys = append(keys, key)
		}
	}
	return keys
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

// older reports whether version a is older than b; none is older than any.
func older(a, b string) bool {
	if a == "" {
		return b != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

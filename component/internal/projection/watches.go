package projection

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// User is a component that uses watches.
type User struct {
	types.NamespacedName
	UID types.UID
}

// scope is what a watch watches: the objects of a kind in a namespace; empty means in all, or that the kind
// has none.
type scope struct {
	schema.GroupKind
	namespace string
	// followed limits it to one object, of which no more than its version is known. It is all if no more is known
	// than the version of the last change, allScalers for a watch of autoscalers, and empty for a watch of
	// dependents.
	followed string
}

func (s scope) covers(key Key) bool {
	return s.followed == "" && s.GroupKind == key.GroupKind && (s.namespace == "" || s.namespace == key.Namespace)
}

// watch is a watch that runs.
type watch struct {
	scope
	stop  func()
	users map[User]bool
	// idle is since when there are no users; zero if there are some.
	idle time.Time
	// version is that of the object that is followed, empty if it does not exist; or of the last change if all are
	// followed. changed is when a change came that is not what the watch saw first.
	version string
	changed time.Time
	// targets are what the autoscalers scale that are watched.
	targets map[types.NamespacedName]Key
	// horizon is how far the watch has come: the newest version that it saw.
	horizon string
	// replaced: what it watches is known; synced is closed then.
	replaced bool
	synced   chan struct{}
	done     func()
	refusal  refusal
}

// reach notes how far the watch has come.
func (w *watch) reach(version string) {
	if older(w.horizon, version) {
		w.horizon = version
	}
}

// horizon is how far the watch of an object has come; empty if there is none.
func (c *Cache) horizon(key Key) string {
	for _, namespace := range []string{"", key.Namespace} {
		if w := c.watches[scope{GroupKind: key.GroupKind, namespace: namespace}]; w != nil && w.horizon != "" {
			return w.horizon
		}
	}
	return ""
}

// watched reports whether a watch of an object runs.
func (c *Cache) watched(key Key) bool {
	return c.watches[scope{GroupKind: key.GroupKind}] != nil || c.watches[scope{GroupKind: key.GroupKind, namespace: key.Namespace}] != nil
}

// Use has the objects of a kind in a namespace known, waits until they are, and notes who uses that. All
// namespaces are watched at once, unless the user of the cluster may not do that. The namespace is empty
// for kinds that have none.
//
// Nothing is known of a kind that the API server does not serve; the error is then a NoMatch one. If the user
// may not watch the kind, the error is the API server's.
func (c *Cache) Use(ctx context.Context, user User, kind schema.GroupVersionKind, namespace string) error {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	c.mu.Lock()
	narrow := c.narrow[kind.GroupKind()]
	c.mu.Unlock()
	src := source{
		kind: mapping.GroupVersionKind, resource: mapping.Resource, metadata: MetadataOnly(kind.GroupKind()), labelled: true,
		transform: c.names.transformer(kind.GroupKind()),
	}
	if !narrow {
		err := c.follow(ctx, user, scope{GroupKind: kind.GroupKind()}, src)
		if !apierrors.IsForbidden(err) || namespace == "" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return err
		}
		c.narrowTo(kind.GroupKind())
	}
	return c.follow(ctx, user, scope{GroupKind: kind.GroupKind(), namespace: namespace}, src)
}

// narrowTo ends the watch of a kind in all namespaces. Those who use it have to ask again for the namespaces
// that they need.
func (c *Cache) narrowTo(kind schema.GroupKind) {
	c.mu.Lock()
	c.narrow[kind] = true
	var names []types.NamespacedName
	if w := c.watches[scope{GroupKind: kind}]; w != nil {
		for user := range w.users {
			if w.replaced { // otherwise it waits, and learns about it
				names = append(names, user.NamespacedName)
			}
		}
		c.end(w)
	}
	c.mu.Unlock()
	c.wake(names...)
}

// follow has a scope watched and waits until its objects are known.
func (c *Cache) follow(ctx context.Context, user User, s scope, src source) error {
	w, err := c.join(user, s, src) //nolint:contextcheck // a watch outlives the pass that asks for it
	if err != nil {
		return fmt.Errorf("watch %s: %w", s.Kind, err)
	}
	for {
		news, err := w.refusal.of(isClosed(w.synced))
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if isClosed(w.synced) {
			return nil
		}
		select {
		case <-w.synced:
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("wait for the objects of kind %s: %w", s.Kind, ctx.Err())
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// join returns the watch of a scope with one more user. It starts it unless it runs.
func (c *Cache) join(user User, s scope, src source) (*watch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[s]
	if w == nil {
		w = &watch{scope: s, users: map[User]bool{}, synced: make(chan struct{})}
		w.done = sync.OnceFunc(func() { close(w.synced) })
		src.namespace, src.name = s.namespace, s.followed
		to := sink(feed{c, w})
		switch s.followed {
		case "":
		case allScalers:
			src.name, to = "", scalers{c, w}
		case all:
			src.name, to = "", pointer{c, w}
		default:
			to = pointer{c, w}
		}
		run, err := c.open(src, to, func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) && c.abandon(w) {
				w.refusal.refuse(&meta.NoKindMatchError{GroupKind: s.GroupKind, SearchedVersions: []string{src.kind.Version}})
				return
			}
			w.refusal.handle(ctx, r, err)
		})
		if err != nil {
			return nil, err
		}
		c.watches[s] = w
		w.stop = c.running.begin(run)
	}
	w.users[user] = true
	w.idle = time.Time{}
	return w, nil
}

// Keep notes that a user needs nothing but the watches of these objects any more. Those that nobody needs are
// stopped after a while.
func (c *Cache) Keep(user User, objects []Key) {
	needed := map[scope]bool{}
	for _, key := range objects {
		needed[scope{GroupKind: key.GroupKind}], needed[scope{GroupKind: key.GroupKind, namespace: key.Namespace}] = true, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, w := range c.watches {
		if s.followed == "" && w.users[user] && !needed[s] {
			c.release(w, user)
		}
	}
}

// Forget notes that a user is gone.
func (c *Cache) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.watches {
		for user := range w.users {
			if user.UID == uid {
				c.release(w, user)
			}
		}
	}
}

// release takes a user off a watch. The caller holds the lock.
func (c *Cache) release(w *watch, user User) {
	if delete(w.users, user); len(w.users) > 0 {
		return
	}
	w.idle = time.Now()
	time.AfterFunc(c.idle, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watches[w.scope] == w && !w.idle.IsZero() && time.Since(w.idle) >= c.idle {
			c.end(w)
		}
	})
}

// abandon ends a watch of a kind that the API server does not serve, if nobody uses it or it never began. It reports
// whether it ended the watch. Those who wait for it must get an error; the next one who needs the kind starts a new watch.
func (c *Cache) abandon(w *watch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(w.users) > 0 && isClosed(w.synced) {
		return false
	}
	if c.watches[w.scope] == w {
		c.end(w)
	}
	return true
}

// end stops a watch and forgets what it knew. The caller holds the lock.
func (c *Cache) end(w *watch) {
	w.stop()
	delete(c.watches, w.scope)
	others := w.followed != ""
	for s := range c.watches {
		others = others || s.followed == "" && s.GroupKind == w.GroupKind
	}
	for _, key := range c.missing(w.scope, nil) {
		if !c.watched(key) { // another watch may see it, too
			c.drop(key)
			delete(c.ours, key)
		}
	}
	if others {
		return
	}
	if w.namespace != "" {
		delete(c.narrow, w.GroupKind) // the user may be allowed more when the kind is needed again
	}
}

// Watched returns how many watches run.
func (c *Cache) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watches)
}

// feed brings what a stream sees to the cache.
type feed struct {
	*Cache
	w *watch
}

func (f feed) replace(objects []any, version string) {
	entries := make([]*entry, 0, len(objects))
	for _, obj := range objects {
		if e, ok := obj.(*entry); ok {
			entries = append(entries, e)
		}
	}
	f.Cache.replace(f.w, entries, version)
	f.w.done()
}

func (f feed) add(obj any) {
	if e, ok := obj.(*entry); ok {
		f.see(f.w, e)
	}
}

func (f feed) remove(obj any) {
	if e, ok := obj.(*entry); ok {
		f.unsee(f.w, e)
	}
}

func (f feed) bookmark(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w.reach(version); f.watches[f.w.scope] == f.w {
		f.settleAll(f.w.scope)
	}
}

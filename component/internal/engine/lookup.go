package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// Looks reads from the target for a renderer. The renderer is called again when what it read changes.
type Looks interface {
	// Object reads an object, and all objects of a kind in a namespace if there is no name. An empty namespace means
	// all. The items of the latter are in the field items.
	Object(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error)
	// APIs reads what the API server serves.
	APIs(ctx context.Context) (target.Served, error)
}

// lookup is an object that a renderer looked up, as it was then, or all objects of a kind.
type lookup struct {
	apply.Ref

	// version is its resourceVersion; empty means that it did not exist.
	version string
	content [sha256.Size]byte
}

func (l lookup) key() projection.Key {
	return projection.Key{GroupKind: l.GroupKind(), NamespacedName: l.NamespacedName}
}

// current reports whether nothing has changed up to a version of what a watch saw.
func (l lookup) current(changed, seen string) bool {
	return changed == l.version || projection.Older(seen, l.version) || l.Name == "" && !projection.Older(l.version, changed)
}

// lookups are those of one rendering.
type lookups struct {
	*pass

	mu    sync.Mutex
	taken map[projection.Key]lookup
	// apis is what was served; nil if nobody asked.
	apis *served
	// ended: the rendering is over. A renderer that was abandoned may still look something up.
	ended bool
}

var errLookupLate = errors.New("the renderer has returned or was abandoned; nothing can be looked up any more")

// end refuses further lookups, and returns what was served; nil if nobody asked.
func (l *lookups) end() *served {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.apis
}

func (l *lookups) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Object implements [Looks]. The object is watched from before it is read.
func (l *lookups) Object(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	if l.isOver() {
		return nil, errLookupLate
	}
	mapping, err := l.Target.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		name.Namespace = ""
	}
	ref := apply.Ref{GroupVersionKind: kind, NamespacedName: name}
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	err = l.Target.Cache.Follow(waiting, l.user(), kind, name)
	if l.isOver() { // nobody would give up the watch
		l.follow(l.all(), l.apis != nil)
		return nil, errLookupLate
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", ref, err)
	}
	live, now, err := l.read(ctx, ref)
	if (err == nil || apierrors.IsNotFound(err)) && !l.isOver() {
		l.mu.Lock()
		l.taken[now.key()] = now
		l.mu.Unlock()
	}
	return live, err
}

// all returns what was looked up, in the order of the keys.
func (l *lookups) all() []lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(l.taken), projection.Key.Compare)
	out := make([]lookup, len(keys))
	for i, key := range keys {
		out[i] = l.taken[key]
	}
	return out
}

// read reads what a renderer looks up.
func (p *pass) read(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, lookup, error) {
	get := p.Target.Client.Get
	if ref.Name == "" {
		get = func(ctx context.Context, r apply.Ref) (*unstructured.Unstructured, error) {
			return p.Target.Client.List(ctx, r.GroupVersionKind, r.Namespace)
		}
	}
	live, err := get(ctx, ref)
	if err != nil {
		return nil, lookup{Ref: ref}, err
	}
	content, err := contentOf(live)
	return live, lookup{ref, live.GetResourceVersion(), content}, err
}

// contentOf identifies an object, or a list of objects, apart from what changes with each write.
func contentOf(live *unstructured.Unstructured) ([sha256.Size]byte, error) {
	object := lasting(live.Object)
	if items, ok := object["items"].([]any); ok {
		items = slices.Clone(items)
		for i, item := range items {
			if o, ok := item.(map[string]any); ok {
				items[i] = lasting(o)
			}
		}
		object["items"] = items
	}
	text, err := json.Marshal(object)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode %s: %w", live.GetName(), err)
	}
	return sha256.Sum256(text), nil
}

// lasting returns an object without what changes with each write.
func lasting(object map[string]any) map[string]any {
	object = maps.Clone(object)
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	return object
}

// unchanged returns what a renderer looked up if it is as it was then, with its present versions. It reads
// only what was written since.
func (p *pass) unchanged(ctx context.Context, then []lookup) (now []lookup, same bool) {
	now = slices.Clone(then)
	for i, l := range now {
		version, seen, known := p.Target.Cache.Followed(l.key())
		switch {
		case !known:
			return nil, false
		case l.current(version, seen):
			continue
		}
		_, found, err := p.read(ctx, l.Ref)
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) || found.content != l.content || (found.version == "") != (l.version == "") {
			return nil, false
		}
		now[i] = found
	}
	return now, true
}

// follow gives up the watches of what is not looked up any more.
func (p *pass) follow(taken []lookup, apis bool) {
	keys := p.shieldKeys()
	if apis {
		keys = append(keys, projection.APIKeys()...)
	}
	for _, l := range taken {
		keys = append(keys, l.key())
	}
	p.Target.Cache.KeepFollowed(p.user(), keys)
}

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

	"github.com/trimtab-dev/trimtab/component/internal/apply"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// Look returns an object of the target for a renderer. The renderer is called again when it changes.
type Look func(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error)

// lookup is an object that a renderer looked up, as it was then.
type lookup struct {
	apply.Ref

	// version is its resourceVersion; empty means that it did not exist.
	version string
	content [sha256.Size]byte
}

func (l lookup) key() projection.Key {
	return projection.Key{GroupKind: l.GroupKind(), NamespacedName: l.NamespacedName}
}

// lookups are those of one rendering.
type lookups struct {
	*pass

	mu    sync.Mutex
	taken map[projection.Key]lookup
	// ended: the rendering is over. A renderer that was abandoned may still look something up.
	ended bool
}

var errLookupLate = errors.New("the renderer has returned or was abandoned; nothing can be looked up any more")

// end refuses further lookups.
func (l *lookups) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func (l *lookups) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// look implements [Look]. The object is watched from before it is read.
func (l *lookups) look(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	ref := apply.Ref{GroupVersionKind: kind, NamespacedName: name}
	if l.isOver() {
		return nil, errLookupLate
	}
	waiting, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	err := l.Target.Cache.Follow(waiting, l.user(), kind, name)
	if l.isOver() { // nobody would give up the watch
		l.follow(l.all())
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
	live, err := p.Target.Client.Get(ctx, ref)
	if err != nil {
		return nil, lookup{Ref: ref}, err
	}
	content, err := contentOf(live)
	return live, lookup{ref, live.GetResourceVersion(), content}, err
}

// contentOf identifies an object, apart from what changes with each write.
func contentOf(live *unstructured.Unstructured) ([sha256.Size]byte, error) {
	live = &unstructured.Unstructured{Object: maps.Clone(live.Object)}
	if metadata, ok := live.Object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		live.Object["metadata"] = metadata
	}
	text, err := json.Marshal(live.Object)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode %s: %w", live.GetName(), err)
	}
	return sha256.Sum256(text), nil
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
		case version == l.version, projection.Older(seen, l.version): // the watch is behind what was read
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
func (p *pass) follow(taken []lookup) {
	keys := p.shieldKeys()
	for _, l := range taken {
		keys = append(keys, l.key())
	}
	p.Target.Cache.KeepFollowed(p.user(), keys)
}

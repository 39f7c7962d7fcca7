package kindcache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Options of a [Pool].
type Options struct {
	Config     *rest.Config
	HTTPClient *http.Client
	Scheme     *runtime.Scheme
	Mapper     meta.RESTMapper
	// Namespaces are those whose objects are watched. Empty means all.
	Namespaces []string
}

// Pool has the kinds that are in use. Make one with [New].
type Pool struct {
	options Options

	mu    sync.Mutex
	ctx   context.Context //nolint:containedctx // the life of the watches, which outlive the passes that ask for them
	kinds map[ID]*kind
}

// New makes a pool, which watches nothing until it is started.
func New(o Options) *Pool { return &Pool{options: o, kinds: map[ID]*kind{}} }

// Start has the pool watch what is held, now and later, until ctx ends.
func (p *Pool) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx = ctx
	for _, k := range p.kinds {
		k.start(ctx)
	}
}

// ID is a kind in one of the forms in which it is kept: typed, unstructured, or metadata alone.
type ID struct {
	schema.GroupVersionKind
	form reflect.Type
}

// IDOf returns the kind of an object or of the objects of a list.
func IDOf(obj runtime.Object, scheme *runtime.Scheme) (ID, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return ID{}, err
	}
	if !meta.IsListType(obj) {
		return ID{gvk, reflect.TypeOf(obj)}, nil
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch obj.(type) {
	case runtime.Unstructured:
		return ID{gvk, reflect.TypeFor[*unstructured.Unstructured]()}, nil
	case *metav1.PartialObjectMetadataList:
		return ID{gvk, reflect.TypeFor[*metav1.PartialObjectMetadata]()}, nil
	}
	item, err := scheme.New(gvk)
	if err != nil {
		return ID{}, fmt.Errorf("find what is in a %T: %w", obj, err)
	}
	return ID{gvk, reflect.TypeOf(item)}, nil
}

// Empty returns an empty object of the kind in its form.
func (id ID) Empty() client.Object {
	obj, _ := reflect.TypeAssert[client.Object](reflect.New(id.form.Elem()))
	obj.GetObjectKind().SetGroupVersionKind(id.GroupVersionKind)
	return obj
}

// Held is a kind for one of its users.
type Held struct {
	kind     *kind
	released chan struct{}
	once     sync.Once
}

// Hold has the kind of an object watched, in the object's form, until it is released.
func (p *Pool) Hold(of client.Object) (*Held, error) {
	id, err := IDOf(of, p.options.Scheme)
	if err != nil {
		return nil, err
	}
	return p.hold(id), nil
}

func (p *Pool) hold(id ID) *Held {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[id]
	if k == nil {
		k = &kind{pool: p, ID: id, changed: make(chan struct{}), kick: make(chan struct{}, 1)}
		p.kinds[id] = k
		if p.ctx != nil {
			k.start(p.ctx)
		}
	}
	k.users++
	return &Held{kind: k, released: make(chan struct{})}
}

// Release ends the use. The watch of a kind without users ends. Doing so again is harmless.
func (h *Held) Release() {
	h.once.Do(func() {
		close(h.released)
		k := h.kind
		k.pool.mu.Lock()
		defer k.pool.mu.Unlock()
		if k.users--; k.users > 0 {
			return
		}
		delete(k.pool.kinds, k.ID)
		if k.stop != nil {
			k.stop()
		}
	})
}

// ID returns the kind.
func (h *Held) ID() ID { return h.kind.ID }

// Status is how a kind is. Its zero value is that of a kind of which nothing is known yet.
type Status struct {
	// Absent: the API server does not serve the kind. It is waited for.
	Absent bool
	// Life is set while the API server serves the kind.
	Life *Life
	// Synced: the cache of this life has all objects.
	Synced bool
	// Err is the error of the last request, nil if that succeeded. Failures is how many failed in a row.
	Err      error
	Failures int
}

// Life is a time in which the API server serves a kind.
type Life struct {
	// Context ends when the API server stops to serve the kind, and when the kind has no users.
	Context context.Context //nolint:containedctx // it is the life
	// Cache has the objects of the kind, and of no other.
	Cache cache.Cache

	informer cache.Informer
}

// Handle has a handler called for the objects that there are and for their changes, until ctx ends.
func (l *Life) Handle(ctx context.Context, h toolscache.ResourceEventHandler) {
	// An informer that has stopped has no events.
	_, _ = scopedInformer{l.informer, ctx}.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// Status returns how the kind is now.
func (h *Held) Status() Status {
	s, _ := h.kind.now()
	return s
}

// Changes returns how the kind is, again after each change, until ctx ends or the kind is released. Changes that
// follow each other quickly may be seen as one.
func (h *Held) Changes(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for {
			status, changed := h.kind.now()
			if ctx.Err() != nil || h.isReleased() || !yield(status) {
				return
			}
			select {
			case <-changed:
			case <-h.released:
			case <-ctx.Done():
			}
		}
	}
}

func (h *Held) isReleased() bool {
	select {
	case <-h.released:
		return true
	default:
		return false
	}
}

var errReleased = errors.New("it is not watched any more")

// Await waits until the objects are known. It does not wait for a kind that the API server does not serve: the error is
// then a NoMatch one. If the kind may not be watched, the error is the API server's.
func (h *Held) Await(ctx context.Context) (client.Reader, error) {
	for s := range h.Changes(ctx) {
		switch {
		case s.Absent:
			return nil, &meta.NoKindMatchError{GroupKind: h.kind.GroupKind(), SearchedVersions: []string{h.kind.Version}}
		case s.Synced:
			return s.Life.Cache, nil
		case s.Forbidden() != nil:
			return nil, s.Err
		}
	}
	if ctx.Err() == nil {
		return nil, errReleased
	}
	if err := h.Status().Err; err != nil {
		return nil, fmt.Errorf("not read completely yet: %w", err)
	}
	return nil, fmt.Errorf("not read completely yet: %w", ctx.Err())
}

// While returns a cache whose informers call the handlers that are added to them until ctx ends.
func While(ctx context.Context, c cache.Cache) cache.Cache { return scoped{c, ctx} }

// scoped is a cache whose handlers are removed.
type scoped struct {
	cache.Cache

	ctx context.Context //nolint:containedctx // the life of the handlers
}

// GetInformer implements cache.Informers.
func (s scoped) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := s.Cache.GetInformer(ctx, obj, opts...)
	return scopedInformer{informer, s.ctx}, err
}

type scopedInformer struct {
	cache.Informer

	ctx context.Context //nolint:containedctx // the life of the handlers
}

// AddEventHandlerWithOptions implements cache.Informer. Sources of controller-runtime add their handlers by it.
func (s scopedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	added, err := s.Informer.AddEventHandlerWithOptions(h, o)
	if err == nil {
		context.AfterFunc(s.ctx, func() { _ = s.RemoveEventHandler(added) }) // an informer that has stopped calls none
	}
	return added, err
}

package looptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// view is the cache of a process: what it was told of the server's objects, and has passed on to the handlers of sources.
type view struct {
	cache.Cache // nil: what is not below is not needed

	scheme  *runtime.Scheme
	mapper  meta.RESTMapper
	tracker clienttesting.ObjectTracker
	objects client.Client
	lags    []*Lag

	mu       sync.Mutex
	pending  []change
	handlers []*informer
	// untold tell handlers of what is stored. While telling, somebody does that; told is signaled afterwards.
	untold  []func()
	telling bool
	told    *sync.Cond
}

func newView(scheme *runtime.Scheme, mapper meta.RESTMapper, s *server, lags []*Lag) (*view, error) {
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	v := &view{
		scheme: scheme, mapper: mapper, tracker: tracker, lags: lags,
		objects: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjectTracker(tracker).WithReturnManagedFields().Build(),
	}
	v.told = sync.NewCond(&v.mu)
	for _, o := range s.all() {
		if err := v.store(change{id: idOf(o), after: o}); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// tell queues a change, and returns the function that delivers what is due. Changes are delivered in order.
func (v *view) tell(c change) (show func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending = append(v.pending, c)
	return v.catchUp
}

// catchUp shows what is due, in order for each kind: first to readers, and then to handlers, which may read and so come here
// again. Only one caller tells handlers at a time.
func (v *view) catchUp() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.storeDue()
	if v.telling {
		return // whoever tells goes on until nothing is left
	}
	v.telling = true
	for len(v.untold) > 0 {
		tell := v.untold[0]
		v.untold = v.untold[1:]
		v.mu.Unlock()
		tell()
		v.mu.Lock()
	}
	v.telling = false
	v.told.Broadcast()
}

// settle is catchUp for the test, which waits until handlers were told.
func (v *view) settle() {
	v.catchUp()
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.telling {
		v.told.Wait()
	}
}

// storeDue stores what is due, and has it told to the handlers that there are now. The caller holds the lock.
func (v *view) storeDue() {
	waits := map[schema.GroupVersionKind]bool{}
	v.pending = slices.DeleteFunc(v.pending, func(c change) bool {
		if waits[c.id.kind] = waits[c.id.kind] || v.late(c); waits[c.id.kind] {
			return false
		}
		if err := v.store(c); err != nil {
			panic(fmt.Errorf("looptest: the cache: %w", err)) // the server had it
		}
		for _, h := range v.handlers {
			v.untold = append(v.untold, func() { h.handle(c) })
		}
		return true
	})
}

// late reports whether a lag keeps a change back.
func (v *view) late(c change) bool {
	mapping, err := v.mapper.RESTMapping(c.id.kind.GroupKind(), c.id.kind.Version)
	if err != nil {
		return false
	}
	for _, l := range v.lags {
		delay, held := l.state()
		if l.covers(mapping.Resource.Resource) && (held != nil || time.Since(c.at) < delay) {
			return true
		}
	}
	return false
}

func (v *view) store(c change) error {
	resource, _ := meta.UnsafeGuessKindToResource(c.id.kind) // as the fake client does
	if c.after == nil {
		return v.tracker.Delete(resource, c.id.Namespace, c.id.Name)
	}
	typed, err := v.scheme.New(c.id.kind)
	if err != nil {
		return err
	}
	obj, err := asForm(typed, c.after)
	if err != nil {
		return err
	}
	if c.before == nil {
		return v.tracker.Create(resource, obj, c.id.Namespace)
	}
	return v.tracker.Update(resource, obj, c.id.Namespace)
}

// Get implements client.Reader.
func (v *view) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	v.catchUp()
	return v.objects.Get(ctx, key, obj)
}

// List implements client.Reader.
func (v *view) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	v.catchUp()
	return v.objects.List(ctx, list, opts...)
}

// IndexField implements client.FieldIndexer.
func (v *view) IndexField(_ context.Context, obj client.Object, field string, keys client.IndexerFunc) error {
	return fake.AddIndex(v.objects, obj, field, keys)
}

// WaitForCacheSync implements cache.Informers.
func (v *view) WaitForCacheSync(context.Context) bool { return true }

// GetInformer implements cache.Informers.
func (v *view) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(obj, v.scheme)
	if err != nil {
		return nil, err
	}
	return &informer{view: v, kind: kind, form: obj}, nil
}

// informer passes changes of a kind to one handler.
type informer struct {
	cache.Informer // nil: what is not below is not needed

	view    *view
	kind    schema.GroupVersionKind
	form    client.Object
	handler toolscache.ResourceEventHandler
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	added := &informer{view: i.view, kind: i.kind, form: i.form, handler: h}
	if err := i.view.add(added); err != nil {
		return nil, err
	}
	i.view.catchUp()
	return synced{}, nil
}

// add has a handler told of what there is, and then of each change.
func (v *view) add(i *informer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	resource, _ := meta.UnsafeGuessKindToResource(i.kind)
	list, err := v.tracker.List(resource, i.kind, "")
	if err != nil {
		return err
	}
	v.handlers = append(v.handlers, i)
	return meta.EachListItem(list, func(o runtime.Object) error {
		obj, err := i.convert(o)
		v.untold = append(v.untold, func() { i.handler.OnAdd(obj, true) })
		return err
	})
}

// HasSynced implements cache.Informer.
func (i *informer) HasSynced() bool { return true }

func (i *informer) convert(o runtime.Object) (client.Object, error) {
	u, err := unstructuredOf(o, i.kind)
	if err != nil {
		return nil, err
	}
	return asForm(i.form, u)
}

// handle tells the handler of a change.
func (i *informer) handle(c change) {
	if c.id.kind != i.kind {
		return
	}
	var before, after client.Object
	if c.before != nil {
		before, _ = asForm(i.form, c.before)
	}
	if c.after != nil {
		after, _ = asForm(i.form, c.after)
	}
	switch {
	case before == nil:
		i.handler.OnAdd(after, false)
	case after == nil:
		i.handler.OnDelete(before)
	default:
		i.handler.OnUpdate(before, after)
	}
}

// synced is the registration of a handler that has all there is.
type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (synced) HasSynced() bool { return true }

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (synced) HasSyncedChecker() toolscache.DoneChecker { return done{} }

type done struct{}

func (done) Name() string { return "looptest" }

func (done) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

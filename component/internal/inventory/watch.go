package inventory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watch follows the ConfigMaps with inventories of components of a kind. It wakes a component when somebody deletes
// one of them, so that its items are written again. And it deletes those whose component does not exist: nobody else
// removes their finalizer. They are left if the finalizer of a component is removed by force, or by a process that is
// not the leader any more.
//
// All namespaces are watched at once. Where that is not allowed, the namespaces are watched in which there are
// components.
type Watch struct {
	Store *Store
	// Kind is that of the components. ConfigMaps of others are left alone.
	Kind     schema.GroupKind
	Metadata metadata.Interface
	Client   client.Client
	// Exists reports whether there is a component. It asks the API server before it says no. The error is
	// [ErrElsewhere] in a namespace that is not the operator's.
	Exists func(context.Context, types.NamespacedName, types.UID) (bool, error)
	Wake   func(types.NamespacedName)
	Log    logr.Logger

	mu  sync.Mutex
	all sync.WaitGroup
	ctx context.Context //nolint:containedctx // the life of the watches, which outlive the passes that ask for them
	// narrow: all namespaces must not be watched. namespaces are those where components are, and whether they are
	// watched.
	narrow     bool
	warned     sync.Once
	namespaces map[string]bool
	// synced are the namespaces of which all ConfigMaps are noted that were there when the watch began; "" stands for
	// all.
	synced map[string]bool
	queue  workqueue.TypedRateLimitingInterface[sighting]
}

// sighting is what was seen of a ConfigMap.
type sighting struct {
	name types.NamespacedName
	// component is the UID of the one that it belongs to, and owner its name.
	component types.UID
	owner     string
	shard

	// all: it is none. What there was in its namespace was seen before.
	all bool
}

// ErrElsewhere is the error of a namespace that is not the operator's.
var ErrElsewhere = errors.New("the operator does not watch this namespace")

// Start runs the watch until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[sighting](time.Second, time.Minute)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	w.mu.Lock()
	w.ctx, w.queue = ctx, queue
	w.all.Go(func() { w.run(ctx, "") })
	w.mu.Unlock()
	w.Store.watched()
	w.all.Go(func() { w.work(ctx, queue) })
	<-ctx.Done()
	queue.ShutDown()
	w.mu.Lock()
	w.ctx = nil
	w.mu.Unlock()
	w.all.Wait()
	return nil
}

// Use says that there are components in a namespace.
func (w *Watch) Use(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.namespaces[namespace]; known || namespace == "" {
		return
	}
	if w.namespaces == nil {
		w.namespaces = map[string]bool{}
	}
	w.namespaces[namespace] = false
	w.spread()
}

// Synced reports whether all ConfigMaps are noted that there were in a namespace when the watch began, or the watch is
// not allowed.
func (w *Watch) Synced(namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced[""] || w.synced[namespace]
}

func (w *Watch) sync(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.synced == nil {
		w.synced = map[string]bool{}
	}
	w.synced[namespace] = true
}

// spread watches the namespaces where components are, if all must not be watched.
func (w *Watch) spread() {
	if !w.narrow || w.ctx == nil {
		return
	}
	for namespace, watched := range w.namespaces {
		if !watched {
			ctx := w.ctx
			w.namespaces[namespace] = true
			w.all.Go(func() { w.run(ctx, namespace) })
		}
	}
}

// retryFirst and retryMost are how long it takes until a watch that failed is tried again.
const (
	retryFirst = 800 * time.Millisecond
	retryMost  = 5 * time.Minute
)

// run watches a namespace, or all, until ctx ends or that turns out not to be allowed.
func (w *Watch) run(ctx context.Context, namespace string) {
	limit := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = w.Store.label()
		return o
	}
	configMaps := w.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return configMaps.List(ctx, limit(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return configMaps.Watch(ctx, limit(o))
		},
	}
	r := toolscache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, &seen{watch: w, namespace: namespace}, toolscache.ReflectorOptions{
		Name: "inventory", TypeDescription: "ConfigMaps with inventories",
	})
	for delay := retryFirst; ctx.Err() == nil; delay = min(2*delay, retryMost) {
		began := time.Now()
		err := r.ListAndWatchWithContext(ctx)
		if apierrors.IsForbidden(err) && namespace == "" {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.narrow = true
			w.spread() //nolint:contextcheck // the other watches live as long as this one
			return
		}
		if time.Since(began) > retryMost {
			delay = retryFirst
		}
		if apierrors.IsForbidden(err) {
			w.sync(namespace)
			w.warned.Do(func() {
				w.Log.Error(err, "a ConfigMap with an inventory that is deleted is not noticed at once; let the operator watch ConfigMaps")
			})
			delay = retryMost
		}
		timer := time.NewTimer(wait.Jitter(delay, 1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// work deals with what was seen.
func (w *Watch) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[sighting]) {
	for {
		s, ended := queue.Get()
		if ended {
			return
		}
		err := w.notice(ctx, s)
		if err == nil || ctx.Err() != nil {
			queue.Forget(s)
		} else {
			w.Log.Error(err, "a ConfigMap with an inventory whose component does not exist is left; this is tried again", "namespace", s.name.Namespace, "name", s.name.Name)
			queue.AddRateLimited(s)
		}
		queue.Done(s)
	}
}

// notice deals with a ConfigMap.
func (w *Watch) notice(ctx context.Context, s sighting) error {
	if s.all {
		w.sync(s.name.Namespace)
		return nil
	}
	component := types.NamespacedName{Namespace: s.name.Namespace, Name: s.owner}
	if w.Store.peek(s.component) == nil {
		exists, err := w.Exists(ctx, component, s.component)
		if errors.Is(err, ErrElsewhere) {
			return nil
		}
		if err != nil {
			return err
		}
		if !exists {
			if s.gone {
				return nil
			}
			return w.Store.drop(ctx, w.Client, s.name, s.shard)
		}
	}
	if w.Store.note(s.component, s.name.Name, s.shard) {
		w.Wake(component)
	}
	return nil
}

// sightingOf returns what is seen of a ConfigMap. It is nothing if it does not belong to a component of the kind.
func (w *Watch) sightingOf(m metav1.Object) (sighting, bool) {
	s := sighting{
		name: client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}, component: types.UID(m.GetLabels()[w.Store.label()]),
		shard: w.Store.shardOf(m),
	}
	for _, owner := range m.GetOwnerReferences() {
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && owner.UID == s.component && group.Group == w.Kind.Group && owner.Kind == w.Kind.Kind {
			s.owner = owner.Name
			return s, true
		}
	}
	return sighting{}, false
}

// watched says that a [Watch] runs.
func (s *Store) watched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped == nil {
		s.dropped = map[types.UID]bool{}
	}
}

// seen has the ConfigMaps of one watch, as a [toolscache.ReflectorStore]. Only its reflector uses it.
type seen struct {
	watch     *Watch
	namespace string
	now       map[types.NamespacedName]sighting
}

var errNoMetadata = errors.New("not the metadata of an object")

// Add implements [toolscache.ReflectorStore].
func (c *seen) Add(obj any) error {
	m, ok := obj.(metav1.Object)
	if !ok {
		return errNoMetadata
	}
	s, ours := c.watch.sightingOf(m)
	if !ours {
		return nil
	}
	if before, known := c.now[s.name]; known && before == s {
		return nil
	}
	if c.now == nil {
		c.now = map[types.NamespacedName]sighting{}
	}
	c.now[s.name] = s
	c.watch.queue.Add(s)
	return nil
}

// Update implements [toolscache.ReflectorStore].
func (c *seen) Update(obj any) error { return c.Add(obj) }

// Delete implements [toolscache.ReflectorStore].
func (c *seen) Delete(obj any) error {
	m, ok := obj.(metav1.Object)
	if !ok {
		return errNoMetadata
	}
	c.lost(client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()})
	return nil
}

func (c *seen) lost(name types.NamespacedName) {
	if s, known := c.now[name]; known {
		delete(c.now, name)
		s.gone = true
		c.watch.queue.Add(s)
	}
}

// Replace implements [toolscache.ReflectorStore].
func (c *seen) Replace(objects []any, _ string) error {
	there := map[types.NamespacedName]bool{}
	for _, obj := range objects {
		if m, ok := obj.(metav1.Object); ok {
			there[client.ObjectKey{Namespace: m.GetNamespace(), Name: m.GetName()}] = true
		}
		if err := c.Add(obj); err != nil {
			return err
		}
	}
	for name := range c.now {
		if !there[name] {
			c.lost(name)
		}
	}
	c.watch.queue.Add(sighting{name: types.NamespacedName{Namespace: c.namespace}, all: true})
	return nil
}

// Resync implements [toolscache.ReflectorStore].
func (*seen) Resync() error { return nil }

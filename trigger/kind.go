package trigger

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Kind wakes objects of kind T when objects of kind K change. The reconciler reads these with loop.Run.Client,
// from the cache and without a request, and the operator gets permission to do so. Which objects of K are cached
// is an option of the manager's cache.
//
// If the objects of T name those of K, [Reference] does more: it has the index.
type Kind[T, K client.Object] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Wakes returns the objects to wake when obj is created, changes or is deleted. Required. It must depend
	// on obj alone and return at once. It is called for both versions of an object that changes. If it
	// panics, all objects are woken.
	Wakes func(obj K) []types.NamespacedName
	// Changed reports whether an update can matter. Nil means that every update does, and so does one for
	// which it panics.
	Changed func(before, after K) bool
	// Of is an empty object of the kind. It is required if K is *unstructured.Unstructured or
	// *metav1.PartialObjectMetadata, and says of which kind; otherwise nil is enough.
	Of K
	// InCluster is another cluster, whose objects are watched. Nil means the operator's own. Add it to the
	// manager, which starts its cache; read from it with its own client. The controller does not wait for it:
	// until its objects have been listed once, /readyz says so, and the controller works without their events. A
	// cluster that goes away later is not shown; the DefaultWatchErrorHandler of its cache's options is told.
	InCluster cluster.Cluster
}

func (Kind[T, K]) source(T) {}

// Check implements [Source].
func (k Kind[T, K]) Check() error {
	if k.Wakes == nil {
		return fmt.Errorf("a trigger.Kind needs Wakes, which says which objects a %T wakes", *new(K))
	}
	return checkKind("Of of a trigger.Kind", k.of())
}

// of returns an empty object of the kind.
func (k Kind[T, K]) of() K {
	if client.Object(k.Of) == client.Object(*new(K)) {
		return cached.New[K]()
	}
	return k.Of
}

// Watches implements [Source].
func (k Kind[T, K]) Watches() []client.Object {
	if k.InCluster != nil {
		return nil
	}
	return []client.Object{k.of()}
}

// Needs implements [Source]: kinds that are not cached, such as Secrets in an operator, are read by requests.
func (k Kind[T, K]) Needs() []Need {
	if k.InCluster != nil {
		return nil
	}
	return []Need{{Of: k.of(), Verbs: []string{"get"}}}
}

// Attach implements [Source].
func (k Kind[T, K]) Attach(target Target[T]) error {
	watching, err := k.watching(target)
	if err != nil {
		return err
	}
	if k.InCluster == nil {
		return attachWatching(target, k.Name, watching)
	}
	h, err := attachHealth(target, k.Name, 0, errNotSynced)
	if err != nil {
		return err
	}
	watched := syncing{watching, h}
	return target.Watch(source.Func(func(ctx context.Context, q queue) error {
		err := watched.Start(ctx, q)
		if err == nil {
			go func() { _ = watched.WaitForSync(ctx) }() // the controller does not wait
		}
		return err
	}))
}

// fixed implements switchable.
func (k Kind[T, K]) fixed() string {
	if k.InCluster != nil {
		return "another cluster is watched from the start"
	}
	return ""
}

// watching implements switchable.
func (k Kind[T, K]) watching(target Target[T]) (source.SyncingSource, error) { //nolint:unparam // that of Owned can fail
	a := attachedKind[T, K]{k, target}
	cache := target.cache()
	if k.InCluster != nil {
		cache = k.InCluster.GetCache()
	}
	updates := predicate.TypedFuncs[K]{UpdateFunc: func(e event.TypedUpdateEvent[K]) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && a.matters(e.ObjectOld, e.ObjectNew)
	}}
	return source.Kind(cache, k.of(), handler.TypedEnqueueRequestsFromMapFunc(a.wakes), updates), nil
}

// switchable is a source of one kind, which a [Dynamic] can start and stop.
type switchable[T client.Object] interface {
	Source[T]
	// fixed returns why it can be neither started nor stopped. Empty means that it can.
	fixed() string
	// watching returns what watches the kind in the cache of target.
	watching(target Target[T]) (source.SyncingSource, error)
}

// attachWatching has a controller watch a kind, and /readyz say whether that has been read.
func attachWatching[T client.Object](target Target[T], name string, watching source.SyncingSource) error {
	h, err := attachHealth(target, name, 0, errNotSynced)
	if err != nil {
		return err
	}
	return target.Watch(syncing{watching, h})
}

// syncing notes when a source of controller-runtime has synced.
type syncing struct {
	source.SyncingSource
	health *health
}

// WaitForSync implements source.SyncingSource.
func (s syncing) WaitForSync(ctx context.Context) error {
	err := s.SyncingSource.WaitForSync(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.health.fails(err)
	default:
		s.health.works()
	}
	return err
}

// attachedKind is a Kind of one controller.
type attachedKind[T, K client.Object] struct {
	Kind[T, K]

	target Target[T]
}

// matters asks the author whether an update can matter.
func (k attachedKind[T, K]) matters(before, after K) bool {
	matters := true
	if k.Changed == nil {
		return matters
	}
	if err := guard.Aside(code, "Changed", func() { matters = k.Changed(before, after) }); err != nil {
		k.target.Log.Error(err, "an update is taken to matter, because Changed did not return",
			"object", client.ObjectKeyFromObject(after), "stack", guard.Stack(err))
	}
	return matters
}

// wakes asks the author which objects to wake. Both run in the cache, where a panic would end the process.
func (k attachedKind[T, K]) wakes(ctx context.Context, obj K) []reconcile.Request {
	var keys []types.NamespacedName
	if err := guard.Aside(code, "Wakes", func() { keys = k.Wakes(obj) }); err != nil {
		k.target.Log.Error(err, "all objects are woken, because Wakes did not return",
			"object", client.ObjectKeyFromObject(obj), "stack", guard.Stack(err))
		keys = k.target.all(ctx)
	}
	var requests []reconcile.Request
	for _, key := range keys {
		if k.target.Event(key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

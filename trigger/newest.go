package trigger

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// defaultKeep is how many objects that are not known to exist have their newest event kept.
const defaultKeep = 10_000

// newest keeps the newest event of each object, and wakes the objects that events concern.
//
// Invariant: there are events of objects that exist, and of at most keep others.
type newest[T client.Object, E any] struct {
	keep   int
	author func(E) []types.NamespacedName
	wakes  *wakes[T]
	health *health

	mu     sync.Mutex
	events map[types.NamespacedName]E
	exists map[types.NamespacedName]struct{}
	// strange are the objects that did not exist when their first event came, in this order.
	strange []types.NamespacedName
}

func (n *newest[T, E]) attach(target Target[T], name string, keep int, author func(E) []types.NamespacedName) (err error) {
	if n.keep = keep; keep == 0 {
		n.keep = defaultKeep
	}
	n.author = author
	n.events, n.exists = map[types.NamespacedName]E{}, map[types.NamespacedName]struct{}{}
	if n.wakes, err = attachWakes(target); err != nil {
		return err
	}
	if n.health, err = attachHealth(target, name, tolerated, nil); err != nil {
		return err
	}
	return target.Watch(source.Kind(target.Manager.GetCache(), cached.New[T](), handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], _ queue) {
			n.appears(client.ObjectKeyFromObject(e.Object))
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], _ queue) {
			n.goes(client.ObjectKeyFromObject(e.Object))
		},
	}))
}

func (n *newest[T, E]) appears(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exists[key] = struct{}{}
}

func (n *newest[T, E]) goes(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.exists, key)
	delete(n.events, key)
}

// get returns the newest event of an object, and whether there was one.
func (n *newest[T, E]) get(obj T) (E, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e, ok := n.events[client.ObjectKeyFromObject(obj)]
	return e, ok
}

// errUnclear is the error of an event of which nobody knows whom it concerns.
var errUnclear = errors.New("the event is not kept, because the operator cannot tell which objects it concerns; its log has more")

// take keeps an event and then wakes the objects that it concerns. When it returns nil, the event is kept.
func (n *newest[T, E]) take(ctx context.Context, e E) error {
	var keys []types.NamespacedName
	if err := guard.Aside(code, "Wakes", func() { keys = n.author(e) }); err != nil {
		n.health.count("unclear")
		n.health.log.Error(err, "all objects are woken, because Wakes did not return", "stack", guard.Stack(err))
		n.wakes.all(ctx)
		return errUnclear
	}
	n.health.count("kept")
	n.store(e, keys)
	n.wakes.put(keys...)
	n.shrink()
	return nil
}

func (n *newest[T, E]) store(e E, keys []types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range keys {
		_, known := n.events[key]
		_, exists := n.exists[key]
		if !known && !exists {
			n.strange = append(n.strange, key)
		}
		n.events[key] = e
	}
}

// shrink drops the oldest events of objects that are not known to exist, while there are too many.
func (n *newest[T, E]) shrink() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.strange) > n.keep {
		key := n.strange[0]
		n.strange = n.strange[1:]
		if _, exists := n.exists[key]; exists {
			continue
		}
		if _, had := n.events[key]; had {
			delete(n.events, key)
			n.wakes.drop(key)
			n.health.count("dropped")
		}
	}
}

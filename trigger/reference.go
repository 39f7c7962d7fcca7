package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Reference wakes an object when another object that it names changes.
type Reference[T client.Object] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// To is an empty object of the kind referred to. Required.
	To client.Object
	// Names returns the objects of that kind that obj refers to. Required. It must depend on obj
	// alone and return at once: it is called for every version of obj. An object for which it
	// panics is woken by every object of the kind.
	Names func(obj T) []types.NamespacedName
	// Changed reports whether an update of the object referred to can matter. Nil means that
	// every update does, and so does one for which it panics.
	Changed func(before, after client.Object) bool
	// Keep has the objects referred to stay as long as an object refers to them. They get the finalizer
	// [FinalizerOf] the kind of obj. One that is deleted gets an event that says what it waits for.
	Keep bool
	// Then are what the objects referred to refer to in turn. Its changes wake obj, too.
	Then []Then
}

// Then is a kind to which the objects of a [Reference] refer.
type Then struct {
	// To is an empty object of the kind. Required.
	To client.Object
	// Names returns the objects of that kind that from, to which a Reference leads, refers to. Required. It
	// must depend on from alone and return at once. If it panics, from is taken to refer to nothing.
	Names func(from client.Object) []types.NamespacedName
}

func (Reference[T]) source(T) {}

// Check implements [Source].
func (r Reference[T]) Check() error {
	if r.Names == nil {
		return errors.New("a trigger.Reference needs Names, which says which objects an object refers to")
	}
	if err := checkKind("To of a trigger.Reference", r.To); err != nil {
		return err
	}
	for _, then := range r.Then {
		if then.Names == nil {
			return errors.New("a trigger.Then needs Names, which says which objects an object refers to")
		}
		if err := checkKind("To of a trigger.Then", then.To); err != nil {
			return err
		}
	}
	return nil
}

// Watches implements [Source].
func (r Reference[T]) Watches() []client.Object {
	kinds := []client.Object{r.To}
	for _, then := range r.Then {
		kinds = append(kinds, then.To)
	}
	return kinds
}

// Needs implements [Source].
func (r Reference[T]) Needs() []Need {
	if r.Keep {
		return []Need{{Of: r.To, Verbs: []string{"patch"}}}
	}
	return nil
}

// Attach implements [Source]. The cache's own index answers which objects name another, so a name
// that an object no longer holds stops waking it.
func (r Reference[T]) Attach(target Target[T]) error {
	a := &attachedReference[T]{Reference: r, target: target, objects: target.objects(), index: "trimtab.dev/" + target.Name}
	if err := a.objects.Index(target.Manager.GetFieldIndexer(), a.index, a.names); err != nil {
		return fmt.Errorf("index %T by the %T it names: %w", *new(T), r.To, err)
	}
	if err := attachWatching(target, r.Name, a.watching()); err != nil {
		return err
	}
	for i := range r.Then {
		if err := a.then(i); err != nil {
			return fmt.Errorf("watch what a %T refers to: %w", r.To, err)
		}
	}
	if r.Keep {
		return a.keep()
	}
	return nil
}

// fixed implements switchable.
func (r Reference[T]) fixed() string {
	if r.Keep || len(r.Then) > 0 {
		return "a Reference with Keep or Then works from the start"
	}
	return ""
}

// watching implements switchable. It has no index, because that cannot be taken out of the cache again.
func (r Reference[T]) watching(target Target[T]) (source.SyncingSource, error) { //nolint:unparam // that of Owned can fail
	return (&attachedReference[T]{Reference: r, target: target, objects: target.objects()}).watching(), nil
}

func (r *attachedReference[T]) watching() source.SyncingSource {
	updates := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && r.matters(e.ObjectOld, e.ObjectNew)
	}}
	return source.Kind(r.target.cache(), r.To, handler.EnqueueRequestsFromMapFunc(r.wakes), updates)
}

// then wakes objects when what the objects that they refer to refer to in turn changes.
func (r *attachedReference[T]) then(i int) error {
	mgr, then, index := r.target.Manager, r.Then[i], fmt.Sprintf("%s-then-%d", r.index, i)
	//nolint:forbidigo // wiring happens before there is a context to inherit
	err := mgr.GetFieldIndexer().IndexField(context.Background(), r.To, index, func(from client.Object) []string {
		var keys []string
		if err := guard.Aside(code, "Names", func() {
			for _, key := range then.Names(from) {
				keys = append(keys, key.String())
			}
		}); err != nil {
			r.target.Log.Error(err, "an object is taken to refer to nothing, because Names did not return",
				"object", client.ObjectKeyFromObject(from), "stack", guard.Stack(err))
		}
		return keys
	})
	if err != nil {
		return err
	}
	wakes := func(ctx context.Context, to client.Object) []reconcile.Request {
		named := client.ObjectKeyFromObject(to)
		found, err := cached.List(ctx, mgr.GetClient(), mgr.GetScheme(), r.To, client.MatchingFields{index: named.String()})
		if err != nil {
			r.target.Log.Error(err, "cannot list who refers to an object that changed; their next passes will see the change", "object", named)
		}
		var requests []reconcile.Request
		for _, from := range found {
			requests = append(requests, r.wakes(ctx, from)...)
		}
		return requests
	}
	return r.target.Watch(source.Kind(mgr.GetCache(), then.To, handler.EnqueueRequestsFromMapFunc(wakes), predicate.ResourceVersionChangedPredicate{}))
}

// attachedReference is a Reference of one controller.
type attachedReference[T client.Object] struct {
	Reference[T]

	target  Target[T]
	objects cached.Objects[T]
	index   string // empty if there is none
	// someUnknown: for some object Names did not return.
	someUnknown atomic.Bool
}

// code is whose code a source calls, as errors say it.
const code = "the controller"

// matters asks the author whether an update of an object referred to can matter. It runs in
// the cache, where a panic would end the process.
func (r *attachedReference[T]) matters(before, after client.Object) bool {
	matters := true
	if r.Changed == nil {
		return matters
	}
	if err := guard.Aside(code, "Changed", func() { matters = r.Changed(before, after) }); err != nil {
		r.target.Log.Error(err, "an update is taken to matter, because Changed did not return",
			"object", client.ObjectKeyFromObject(after), "stack", guard.Stack(err))
	}
	return matters
}

// unknown is the key under which the index has objects for which Names did not return. It is no name.
const unknown = "?"

// names asks the author which objects obj refers to. It runs in the cache, too, once for each
// version of obj.
func (r *attachedReference[T]) names(obj T) []string {
	var names []types.NamespacedName
	if err := guard.Aside(code, "Names", func() { names = r.Names(obj) }); err != nil {
		r.target.Log.Error(err, "an object is woken by every object that it might refer to, because Names did not return",
			"object", client.ObjectKeyFromObject(obj), "stack", guard.Stack(err))
		r.someUnknown.Store(true)
		return []string{unknown}
	}
	keys := make([]string, 0, len(names))
	for _, key := range names {
		keys = append(keys, key.String())
	}
	return keys
}

// wakes returns the objects that name to, by the index, and those for which Names did not return.
func (r *attachedReference[T]) wakes(ctx context.Context, to client.Object) []reconcile.Request {
	named := client.ObjectKeyFromObject(to)
	found := r.under(ctx, named.String(), named)
	if r.someUnknown.Load() {
		found = append(found, r.under(ctx, unknown, named)...)
	}
	var requests []reconcile.Request
	for _, key := range found {
		if r.target.Event(key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

func (r *attachedReference[T]) under(ctx context.Context, key string, named types.NamespacedName) []types.NamespacedName {
	var found []T
	var err error
	if r.index != "" {
		found, err = r.objects.Under(ctx, r.index, key)
	} else if found, err = r.objects.All(ctx); err == nil {
		found = slices.DeleteFunc(slices.Clone(found), func(obj T) bool {
			names := r.names(obj)
			return !slices.Contains(names, key) && !slices.Contains(names, unknown)
		})
	}
	if err != nil {
		r.target.Log.Error(err, "cannot list who refers to an object that changed; their next passes will see the change", "object", named)
	}
	return cached.Keys(found)
}

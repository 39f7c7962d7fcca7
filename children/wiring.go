package children

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// settings are those options that decide what a child is.
type settings struct {
	// manual: owner references are the author's business.
	manual bool
	// loopName is the name that the author gave the controller.
	loopName string
}

// wiring is what a set needs of the manager.
type wiring[T client.Object] struct {
	settings

	names names
	owner schema.GroupVersionKind
	// ownerNamespaced: owners have a namespace.
	ownerNamespaced bool
	kinds           []kind
	scheme          *runtime.Scheme
	cache           cache.Cache
	live            client.Reader
	client          *apply.Client
	memory          *memory
	waker           *trigger.Waker
	terms           loop.Terms
}

// kind is a kind of children.
type kind struct {
	empty      client.Object
	gvk        schema.GroupVersionKind
	namespaced bool
	// finalized: there are protected or unreachable children of the kind; elsewhere: such as may be in any namespace.
	finalized, elsewhere bool
}

// kindsOf returns the kinds of children, each once, in order. Whether they have namespaces is not known yet.
func kindsOf[T client.Object](all []Child[T], o settings, scheme *runtime.Scheme) ([]kind, error) {
	var kinds []kind
	var problems []error
	at := map[reflect.Type]int{}
	for _, c := range all {
		t := reflect.TypeOf(c.kind)
		i, known := at[t]
		if !known {
			gvk, err := apiutil.GVKForObject(c.kind, scheme)
			if err != nil {
				problems = append(problems, fmt.Errorf("child %q: the scheme lacks its type; add its AddToScheme: %w", c.name, err))
				continue
			}
			i = len(kinds)
			at[t], kinds = i, append(kinds, kind{empty: c.kind, gvk: gvk})
		}
		kinds[i].finalized = kinds[i].finalized || c.finalized(o)
		kinds[i].elsewhere = kinds[i].elsewhere || c.elsewhere
	}
	return kinds, errors.Join(problems...)
}

// kind returns the kind of a child.
func (w *wiring[T]) kind(c Child[T]) kind {
	for _, k := range w.kinds {
		if reflect.TypeOf(k.empty) == reflect.TypeOf(c.kind) {
			return k
		}
	}
	return kind{}
}

// wire takes from mgr what a set needs, and checks what depends on the API server.
func (c *Controller[T]) wire(mgr manager.Manager) error {
	w := c.set.wiring
	w.scheme, w.cache, w.live = mgr.GetScheme(), mgr.GetCache(), mgr.GetAPIReader()
	var err error
	if w.owner, err = c.GroupVersionKind(w.scheme); err != nil {
		return err
	}
	w.names = namesOf(w.loopName, w.owner.GroupKind())
	w.memory.label = w.names.owner()
	if msgs := validation.IsQualifiedName(w.names.owner()); len(msgs) > 0 {
		return fmt.Errorf("the labels of children begin with %q, which cannot begin a label: %s; set Loop.Name to a DNS label", w.names.prefix, msgs[0])
	}
	if w.kinds, err = kindsOf(c.set.children, w.settings, w.scheme); err != nil {
		return err
	}
	mapper := mgr.GetRESTMapper()
	own, err := mapper.RESTMapping(w.owner.GroupKind(), w.owner.Version)
	if err != nil {
		return fmt.Errorf("the API server does not serve %s; install its CRD first: %w", w.owner.GroupKind(), err)
	}
	w.ownerNamespaced = namespacedIn(own)
	if err := c.place(mapper); err != nil {
		return err
	}
	manager := "trimtab-" + cmp.Or(w.loopName, namesOf("", schema.GroupKind{Kind: w.owner.Kind}).prefix)
	w.client, err = apply.New(mgr.GetConfig(), mgr.GetHTTPClient(), mapper, manager)
	return errors.Join(err, w.index(mgr))
}

// place finds out which kinds have namespaces.
func (c *Controller[T]) place(mapper meta.RESTMapper) error {
	w := c.set.wiring
	for i := range w.kinds {
		k := &w.kinds[i]
		mapping, err := mapper.RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
		if err != nil {
			return fmt.Errorf("the API server does not serve %s, a kind of children; install its CRD first: %w", k.gvk.GroupKind(), err)
		}
		k.namespaced = namespacedIn(mapping)
	}
	for _, child := range c.set.children {
		if k := w.kind(child); !k.namespaced && w.ownerNamespaced && !child.elsewhere {
			return fmt.Errorf("child %q: %s objects have no namespace and their owner has one, so garbage collection does not reach them: add .Elsewhere() to the child",
				child.name, k.gvk.Kind)
		}
	}
	return nil
}

// ownerIndex is the index of children by the UID of their owner.
const ownerIndex = "trimtab.dev/owner-of-"

// index has the cache find the children of an owner without going through all objects of a kind.
func (w *wiring[T]) index(mgr manager.Manager) error {
	for _, k := range w.kinds {
		//nolint:forbidigo // wiring happens before there is a context to inherit
		err := mgr.GetFieldIndexer().IndexField(context.Background(), k.empty, ownerIndex+w.names.prefix, func(o client.Object) []string {
			if uid := o.GetLabels()[w.names.owner()]; uid != "" {
				return []string{uid}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index %s by owner: %w", k.gvk.Kind, err)
		}
	}
	return nil
}

// refOf names an object of a kind.
func (k kind) refOf(key types.NamespacedName) apply.Ref {
	return apply.Ref{GroupVersionKind: k.gvk, NamespacedName: key}
}

// sources wake owners of children that change.
func (s *Set[T]) sources(waker *trigger.Waker) []trigger.Source[T] {
	sources := []trigger.Source[T]{trigger.External[T]{Waker: waker}}
	seen := map[reflect.Type]bool{}
	for _, c := range s.children {
		if t := reflect.TypeOf(c.kind); c.kind != nil && !seen[t] {
			seen[t] = true
			sources = append(sources, trigger.Owned[T]{
				Of:     c.kind,
				Owners: func(obj client.Object) []types.NamespacedName { return s.wiring.owners(s.wiring.kind(c), obj) },
				News: func(before, after client.Object) bool {
					return s.wiring.memory.news(s.wiring.kind(c).refOf(client.ObjectKeyFromObject(cmpObject(after, before))), before, after)
				},
			})
		}
	}
	return sources
}

// cmpObject returns the first object that is not nil.
func cmpObject(a, b client.Object) client.Object {
	if a != nil {
		return a
	}
	return b
}

// owners returns the owners of an object besides the one in its owner references: the one in its annotation, and those
// that wait for the object to go.
func (w *wiring[T]) owners(k kind, obj client.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if owner, ok := w.names.referred(obj); ok {
		keys = append(keys, owner)
	}
	return append(keys, w.memory.claimed(k.refOf(client.ObjectKeyFromObject(obj)))...)
}

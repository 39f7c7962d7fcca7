// Package cached reads the objects of one kind from a manager's cache, all of them or by an index.
// None of it costs a request.
package cached

import (
	"context"
	"fmt"
	"reflect"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Objects are the objects of kind T that the cache behind Reader holds.
type Objects[T client.Object] struct {
	Scheme *runtime.Scheme
	Reader client.Reader
}

// New returns an empty object of kind T.
func New[T client.Object]() T {
	obj, _ := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	return obj
}

// Index lets [Objects.Under] find objects by what keys returns for them. It is called before the
// cache starts.
func (Objects[T]) Index(indexer client.FieldIndexer, name string, keys func(obj T) []string) error {
	//nolint:forbidigo // wiring happens before there is a context to inherit
	return indexer.IndexField(context.Background(), New[T](), name, func(o client.Object) []string {
		obj, ok := o.(T)
		if !ok {
			return nil
		}
		return keys(obj)
	})
}

// Under returns the objects for which the index of that name has key. They are the cache's own and
// must not be changed.
func (o Objects[T]) Under(ctx context.Context, name, key string) ([]T, error) {
	return o.list(ctx, client.MatchingFields{name: key})
}

// All returns every object. They are the cache's own and must not be changed.
func (o Objects[T]) All(ctx context.Context) ([]T, error) { return o.list(ctx) }

// In returns the objects of a namespace; empty means all. They are the cache's own and must not be changed.
func (o Objects[T]) In(ctx context.Context, namespace string) ([]T, error) {
	return o.list(ctx, client.InNamespace(namespace))
}

func (o Objects[T]) list(ctx context.Context, options ...client.ListOption) ([]T, error) {
	all, err := List(ctx, o.Reader, o.Scheme, New[T](), options...)
	var found []T
	for _, item := range all {
		if obj, ok := item.(T); ok {
			found = append(found, obj)
		}
	}
	return found, err
}

// List returns the objects of the kind of an empty object. They are the cache's own and must not be changed.
func List(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, empty client.Object, options ...client.ListOption) ([]client.Object, error) {
	list, err := newList(scheme, empty)
	if err != nil {
		return nil, err
	}
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var found []client.Object
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			found = append(found, obj)
		}
		return nil
	})
	return found, err
}

func newList(scheme *runtime.Scheme, empty client.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(empty, scheme)
	if err != nil {
		return nil, err
	}
	list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	typed, ok := list.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is registered as the list of %s but is not a list", list, gvk.Kind)
	}
	return typed, nil
}

// Keys returns the names of objects.
func Keys[T client.Object](objects []T) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(objects))
	for _, o := range objects {
		keys = append(keys, client.ObjectKeyFromObject(o))
	}
	return keys
}

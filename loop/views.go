package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// views are the kinds, in each of their forms, that a controller reads from the cache: its own kind, what its sources
// watch, and what was read in its passes. None of the methods starts an informer or sends a request, so a kind that is
// only written has no view, and nothing waits for it.
type views struct {
	informers cache.Informers // nil in tests

	mu   sync.RWMutex
	all  map[viewID]*view // nil for what is read live
	kind map[schema.GroupKind][]*view
}

type viewID struct {
	kind schema.GroupVersionKind
	form reflect.Type
}

// view is a kind as the cache shows it in one form: typed, unstructured, or metadata alone.
type view struct {
	viewID

	reader client.Reader
	// newest returns the version up to which the cache has everything; empty if that is not known.
	newest func(context.Context) string
}

func newViews(informers cache.Informers) *views {
	return &views{informers: informers, all: map[viewID]*view{}, kind: map[schema.GroupKind][]*view{}}
}

func idOf(obj runtime.Object, gvk schema.GroupVersionKind) viewID {
	return viewID{kind: gvk, form: reflect.TypeOf(obj).Elem()}
}

// empty returns an empty object of the view.
func (id viewID) empty() client.Object {
	obj, _ := reflect.TypeAssert[client.Object](reflect.New(id.form))
	obj.GetObjectKind().SetGroupVersionKind(id.kind)
	return obj
}

// watched adds a kind that is known to be in the cache behind reader.
func (v *views) watched(reader client.Reader, obj client.Object, gvk schema.GroupVersionKind) {
	id := idOf(obj, gvk)
	w := &view{viewID: id, reader: reader, newest: v.newest(id)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[id] == nil {
		v.all[id] = w
		v.kind[gvk.GroupKind()] = append(v.kind[gvk.GroupKind()], w)
	}
}

// newest returns the version up to which an informer has everything. A cache of chosen namespaces does not tell.
func (v *views) newest(id viewID) func(context.Context) string {
	var once sync.Once
	newest := func() string { return "" }
	return func(ctx context.Context) string {
		once.Do(func() {
			if v.informers == nil {
				return
			}
			informer, err := v.informers.GetInformer(ended(ctx), id.empty(), cache.BlockUntilSynced(false))
			if shared, ok := informer.(interface{ GetStore() toolscache.Store }); ok && err == nil {
				newest = shared.GetStore().LastStoreSyncResourceVersion
			}
		})
		return newest()
	}
}

// ended returns a context that is over. A cache answers nevertheless, and a client sends no request.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// find returns the view of a kind in a form, and whether it is known yet if that is in the cache.
func (v *views) find(id viewID) (w *view, known bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	w, known = v.all[id]
	return w, known
}

// read learns from a read of obj through reader that has succeeded, or found nothing. It reports whether the cache answered.
func (v *views) read(ctx context.Context, reader client.Reader, key types.NamespacedName, obj client.Object, gvk schema.GroupVersionKind) bool {
	id := idOf(obj, gvk)
	if w, known := v.find(id); known {
		return w != nil
	}
	return v.learn(reader, id, reader.Get(ended(ctx), key, id.empty(), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency))
}

// listed is read for a list.
func (v *views) listed(ctx context.Context, reader client.Reader, list client.ObjectList, id viewID, opts []client.ListOption) bool {
	if w, known := v.find(id); known {
		return w != nil
	}
	again, _ := reflect.TypeAssert[client.ObjectList](reflect.New(reflect.TypeOf(list).Elem()))
	again.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())
	in := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return v.learn(reader, id, reader.List(ended(ctx), again, client.InNamespace(in), client.Limit(1), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency))
}

// learn notes whether a read with [ended] was answered.
func (v *views) learn(reader client.Reader, id viewID, err error) bool {
	switch {
	case client.IgnoreNotFound(err) == nil:
		v.watched(reader, id.empty(), id.kind)
		return true
	case errors.Is(err, context.Canceled) || strings.Contains(err.Error(), context.Canceled.Error()):
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all[id] = nil
	}
	return false
}

// shows reports whether every view of the kind shows a write, and whether one of them has no such object though it was
// written.
func (v *views) shows(ctx context.Context, t target, w write) (seen, missing bool) {
	v.mu.RLock()
	of := v.kind[t.kind]
	v.mu.RUnlock()
	seen = true
	for _, view := range of {
		has, none := view.shows(ctx, t.key, w)
		seen, missing = seen && has, missing || none
	}
	return seen, missing
}

// shows is the same of one view.
func (w *view) shows(ctx context.Context, key types.NamespacedName, of write) (seen, missing bool) {
	obj := w.empty()
	err := w.reader.Get(ended(ctx), key, obj, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsNotFound(err) && of.deleted:
		return true, false
	case apierrors.IsNotFound(err):
		return w.reached(ctx, of), true
	case err != nil: // the cache does not hold the namespace
		return true, false
	}
	return of.shownBy(obj), false
}

// reached reports whether the cache has everything up to a write, as far as it is known to.
func (w *view) reached(ctx context.Context, of write) bool {
	newest := w.newest(ctx)
	return newest != "" && !older(newest, of.version)
}

func (v *views) reached(ctx context.Context, id viewID, of write) bool {
	w, _ := v.find(id)
	return w != nil && w.reached(ctx, of)
}

// show reports whether the view shows all writes.
func (w *view) show(ctx context.Context, all map[target]write) bool {
	for t, of := range all {
		if seen, _ := w.shows(ctx, t.key, of); !seen {
			return false
		}
	}
	return true
}

// matching returns the objects in the cache that are like obj and match options, with their metadata.
func (v *views) matching(ctx context.Context, obj client.Object, scheme *runtime.Scheme, options client.ListOptions) []client.Object {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil
	}
	v.mu.RLock()
	of := v.kind[gvk.GroupKind()]
	v.mu.RUnlock()
	var found []client.Object
	for _, view := range of {
		list, err := view.list(scheme)
		if err != nil || view.reader.List(ended(ctx), list, &options, client.DisableReadYourWritesConsistency) != nil {
			continue
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if o, ok := item.(client.Object); ok {
				o.GetObjectKind().SetGroupVersionKind(view.kind)
				found = append(found, o)
			}
			return nil
		})
	}
	return found
}

// list returns an empty list of the view.
func (id viewID) list(scheme *runtime.Scheme) (client.ObjectList, error) {
	gvk := id.kind.GroupVersion().WithKind(id.kind.Kind + "List")
	switch id.empty().(type) {
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a list of %s: %w", id.kind.Kind, err)
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list", obj)
	}
	return list, nil
}

// itemOf returns the view of what a list has.
func itemOf(list client.ObjectList, scheme *runtime.Scheme) (viewID, error) {
	gvk, err := apiutil.GVKForObject(list, scheme)
	if err != nil {
		return viewID{}, fmt.Errorf("find the kind of a %T: %w", list, err)
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	switch list.(type) {
	case runtime.Unstructured:
		return idOf(&unstructured.Unstructured{}, gvk), nil
	case *metav1.PartialObjectMetadataList:
		return idOf(&metav1.PartialObjectMetadata{}, gvk), nil
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return viewID{}, fmt.Errorf("make a %s: %w", gvk.Kind, err)
	}
	return idOf(obj, gvk), nil
}

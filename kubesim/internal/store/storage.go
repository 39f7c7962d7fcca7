package store

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Decorate makes the storage of one resource. It is a [generic.StorageDecorator]: given in
// [generic.RESTOptions], it takes etcd's place under an unchanged registry.
func Decorate(config *storagebackend.ConfigForResource, prefix string,
	_ func(runtime.Object) (string, error), newObject, _ func() runtime.Object,
	_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s := &resource{
		codec: config.Codec, newObject: newObject, prefix: prefix, name: config.GroupResource,
	}
	return s, func() {}, nil
}

var _ generic.StorageDecorator = Decorate

// resource is the storage of one resource. It holds no data: that is in the request's [DB].
// Objects are kept encoded by the resource's own codec, as in etcd, so that reading one
// applies defaults and conversions as it does there.
type resource struct {
	codec     runtime.Codec
	newObject func() runtime.Object
	prefix    string
	name      schema.GroupResource
}

// root is what etcd's keys begin with in a real cluster; messages show it.
const root = "/registry"

var versioner storage.APIObjectVersioner

var errCompacted = apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")

func tooLarge(asked, current int64) error {
	return storage.NewTooLargeResourceVersionError(uint64(asked), uint64(current), 0)
}

func (s *resource) Versioner() storage.Versioner { return versioner }

// Create stores a new object. Its UID is the world's next, not a random one: equal runs
// make equal objects.
func (s *resource) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	if v, err := versioner.ObjectResourceVersion(obj); err == nil && v != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	db := From(ctx)
	if _, ok := db.get(key); ok {
		return storage.NewKeyExistsError(key, 0)
	}
	if m, err := meta.Accessor(obj); err == nil && m.GetUID() != "" {
		m.SetUID(types.UID(UID(key, db.Serial())))
	}
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return fmt.Errorf("PrepareObjectForStorage failed: %w", err)
	}
	data, err := runtime.Encode(s.codec, obj)
	if err != nil {
		return err
	}
	rev, ok := db.swap(key, 0, data, end(ttl))
	if !ok {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return s.decode(data, rev, out)
}

func (s *resource) Delete(ctx context.Context, key string, out runtime.Object, pre *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	kind, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	db := From(ctx)
	for {
		e, ok := db.get(key)
		if !ok {
			return storage.NewKeyNotFoundError(key, 0)
		}
		current := blank(kind)
		if err := s.decode(e.data, e.rev, current); err != nil {
			return err
		}
		if err := pre.Check(root+key, current); pre != nil && err != nil {
			return err
		}
		if err := validate(ctx, current); err != nil {
			return err
		}
		if rev, ok := db.swap(key, e.rev, nil, time.Time{}); ok {
			return s.decode(e.data, rev, out)
		}
	}
}

func (s *resource) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	db := From(ctx)
	e, ok := db.get(key)
	if err := s.notOlder(opts.ResourceVersion, db.Revision()); err != nil {
		return err
	}
	switch {
	case ok:
		return s.decode(e.data, e.rev, out)
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

func (s *resource) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	prefix, err := storage.PrepareKey(s.prefix, key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	into, err := conversion.EnforcePtr(items)
	if err != nil || into.Kind() != reflect.Slice {
		return fmt.Errorf("need a pointer to a slice: %w", err)
	}
	at, from, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return err
	}
	p, err := From(ctx).list(prefix, !opts.Recursive, at)
	if err != nil {
		return err
	}
	if at == 0 {
		if err := s.notOlder(opts.ResourceVersion, p.rev); err != nil {
			return err
		}
	}
	return s.fill(list, into, p, prefix, from, opts)
}

// fill puts the rows of a page that match into a list, up to the limit asked for.
func (s *resource) fill(list runtime.Object, into reflect.Value, p page, prefix, from string, opts storage.ListOptions) error {
	rows := p.rows
	for len(rows) > 0 && rows[0].key < from {
		rows = rows[1:]
	}
	count, limit := int64(len(rows)), opts.Predicate.Limit
	last, newItem := "", itemMaker(list, into)
	for len(rows) > 0 && (limit == 0 || int64(into.Len()) < limit) {
		last = rows[0].key
		item := newItem()
		if err := s.decode(rows[0].data, rows[0].rev, item); err != nil {
			return err
		}
		if ok, err := opts.Predicate.Matches(item); err == nil && ok {
			into.Set(reflect.Append(into, reflect.ValueOf(item).Elem()))
		}
		rows = rows[1:]
	}
	if into.IsNil() {
		into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	}
	next, remaining, err := storage.PrepareContinueToken(last, prefix, p.rev, count, len(rows) > 0, opts)
	if err != nil {
		return err
	}
	return versioner.UpdateList(list, uint64(p.rev), next, remaining)
}

// GuaranteedUpdate stores what try makes of the present state. An update that changes
// nothing makes no revision, as in etcd's store.
func (s *resource) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	pre *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object,
) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	kind, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	db := From(ctx)
	for {
		e, ok := db.get(key)
		if !ok && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		data, ends, err := s.attempt(key, e, ok, blank(kind), pre, try)
		if err != nil {
			return err
		}
		if ok && bytes.Equal(data, e.data) {
			return s.decode(e.data, e.rev, out)
		}
		if rev, ok := db.swap(key, e.rev, data, ends); ok {
			return s.decode(data, rev, out)
		}
	}
}

// attempt computes one update.
func (s *resource) attempt(key string, e entry, found bool, current runtime.Object, pre *storage.Preconditions, try storage.UpdateFunc) ([]byte, time.Time, error) {
	ends := e.ends
	if !found {
		if err := runtime.SetZeroValue(current); err != nil {
			return nil, ends, err
		}
	} else if err := s.decode(e.data, e.rev, current); err != nil {
		return nil, ends, err
	}
	if err := pre.Check(root+key, current); err != nil {
		return nil, ends, err
	}
	wanted, ttl, err := try(current, storage.ResponseMeta{ResourceVersion: uint64(e.rev)})
	if err != nil {
		return nil, ends, err
	}
	if ttl != nil {
		ends = end(*ttl)
	}
	if err := versioner.PrepareObjectForStorage(wanted); err != nil {
		return nil, ends, fmt.Errorf("PrepareObjectForStorage failed: %w", err)
	}
	data, err := runtime.Encode(s.codec, wanted)
	return data, ends, err
}

func (s *resource) Stats(ctx context.Context) (storage.Stats, error) {
	p, err := From(ctx).list(s.prefix+"/", false, 0)
	return storage.Stats{ObjectCount: int64(len(p.rows))}, err
}

func (s *resource) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	return uint64(From(ctx).Revision()), nil
}

// The rest of [storage.Interface] concerns etcd's own troubles.

func (s *resource) ReadinessCheck() error                               { return nil }
func (s *resource) RequestWatchProgress(context.Context) error          { return nil }
func (s *resource) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }
func (s *resource) CompactRevision() int64                              { return 0 }

func (s *resource) decode(data []byte, rev int64, out runtime.Object) error {
	if _, _, err := s.codec.Decode(data, nil, out); err != nil {
		return err
	}
	return versioner.UpdateObject(out, uint64(rev))
}

// notOlder checks that data of revision rev satisfies a reader that asked for at least asked.
func (s *resource) notOlder(asked string, rev int64) error {
	if asked == "" {
		return nil
	}
	least, err := versioner.ParseResourceVersion(asked)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if int64(least) > rev {
		return tooLarge(int64(least), rev)
	}
	return nil
}

// end returns when something stored now with a time to live in seconds is over.
func end(ttl uint64) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ttl) * time.Second)
}

// blank returns an empty object of the kind that v holds.
func blank(v reflect.Value) runtime.Object {
	if u, ok := v.Addr().Interface().(runtime.Unstructured); ok {
		return u.NewEmptyInstance()
	}
	return reflect.New(v.Type()).Interface().(runtime.Object)
}

// itemMaker returns what makes empty items of a list.
func itemMaker(list runtime.Object, items reflect.Value) func() runtime.Object {
	if l, ok := list.(*unstructured.UnstructuredList); ok && l.GetAPIVersion() != "" {
		return func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": l.GetAPIVersion()}}
		}
	}
	kind := items.Type().Elem()
	return func() runtime.Object { return reflect.New(kind).Interface().(runtime.Object) }
}

// UID returns a UID that depends on nothing but its arguments.
func UID(key string, serial int64) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", fnv32(key), serial)
}

func fnv32(s string) uint32 {
	h := uint32(2166136261)
	for _, b := range []byte(s) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h
}

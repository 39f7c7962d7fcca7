package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
// applies defaults and conversions as it does there; known spares decoding the same bytes again.
type resource struct {
	codec     runtime.Codec
	newObject func() runtime.Object
	prefix    string
	name      schema.GroupResource
	known     recent
}

// root is what etcd's keys begin with in a real cluster; messages show it.
const root = "/registry"

var versioner = storage.APIObjectVersioner{}

func (s *resource) Versioner() storage.Versioner { return versioner }

// Create stores a new object. Its UID is the cluster's next, not a random one: equal runs
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
	if _, _, found := db.get(key); found {
		return storage.NewKeyExistsError(key, 0)
	}
	identify(db, key, obj)
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return fmt.Errorf("PrepareObjectForStorage failed: %w", err)
	}
	data, err := runtime.Encode(s.codec, obj)
	if err != nil {
		return err
	}
	e, ok := db.swap(key, 0, data, end(ttl))
	if !ok {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return s.read(e, out)
}

// identify replaces a random UID by the cluster's next.
func identify(db *DB, key string, obj runtime.Object) {
	m, err := meta.Accessor(obj)
	if err == nil && m.GetUID() != "" && !strings.Contains(string(m.GetUID()), unlikely) {
		m.SetUID(types.UID(UID(key, db.Serial())))
	}
}

func (s *resource) Delete(ctx context.Context, key string, out runtime.Object, pre *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	if err := held(ctx); err != nil {
		return err
	}
	db := From(ctx)
	for {
		e, _, found := db.get(key)
		if !found {
			return storage.NewKeyNotFoundError(key, 0)
		}
		current, err := s.object(e)
		if err != nil {
			return err
		}
		if err := pre.Check(root+key, current); err != nil {
			return err
		}
		if err := validate(ctx, current); err != nil {
			return err
		}
		if gone, ok := db.swap(key, e.rev, nil, time.Time{}); ok {
			if err := s.read(e, out); err != nil {
				return err
			}
			return versioner.UpdateObject(out, uint64(gone.rev))
		}
	}
}

func (s *resource) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := storage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return err
	}
	e, rev, found := From(ctx).get(key)
	if err := notOlder(opts.ResourceVersion, rev); err != nil {
		return err
	}
	switch {
	case found:
		return s.read(e, out)
	case opts.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
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
	db := From(ctx)
	for {
		e, _, found := db.get(key)
		if !found && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		current := s.newObject()
		if found {
			if current, err = s.object(e); err != nil {
				return err
			}
		} else if err := runtime.SetZeroValue(current); err != nil {
			return err
		}
		if err := pre.Check(root+key, current); err != nil {
			return err
		}
		data, ends, err := s.attempt(db, key, current, e.rev, try)
		if err != nil {
			return err
		}
		if found && bytes.Equal(data, e.data) {
			return s.read(e, out)
		}
		if changed, ok := db.swap(key, e.rev, data, ends); ok {
			return s.read(changed, out)
		}
	}
}

// attempt computes one update. What has a time to live keeps it only if the update says so.
// One that makes the object, as an apply may, gives it its UID.
func (s *resource) attempt(db *DB, key string, current runtime.Object, rev int64, try storage.UpdateFunc) (data []byte, ends time.Time, err error) {
	wanted, ttl, err := try(current, storage.ResponseMeta{ResourceVersion: uint64(rev)})
	if err != nil {
		return nil, ends, err
	}
	if ttl != nil {
		ends = end(*ttl)
	}
	if rev == 0 {
		identify(db, key, wanted)
	}
	if err := versioner.PrepareObjectForStorage(wanted); err != nil {
		return nil, ends, fmt.Errorf("PrepareObjectForStorage failed: %w", err)
	}
	data, err = runtime.Encode(s.codec, wanted)
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

// end returns when something stored now with a time to live in seconds is over.
func end(ttl uint64) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ttl) * time.Second)
}

// UID returns a UID that depends on nothing but its arguments. [resource.Create] keeps it.
func UID(key string, serial int64) string {
	return fmt.Sprintf("%08x%s%012x", fnv32(key), unlikely, serial)
}

// unlikely is part of our UIDs, and of no random one.
const unlikely = "-0000-4000-8000-"

func fnv32(s string) uint32 {
	h := uint32(2166136261)
	for _, b := range []byte(s) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h
}

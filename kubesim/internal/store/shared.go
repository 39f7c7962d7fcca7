package store

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
)

// shared keeps what a revision of an object was decoded to. Decoding applies a schema's
// defaults and costs more than all else a request does, so all who look at the same revision
// share it: requests, watches, and clusters opened from one snapshot.
type shared struct{ last atomic.Pointer[decoded] }

// decoded is an object as one resource's codec reads it. It is never modified; readers get
// copies.
type decoded struct {
	by  *resource
	obj runtime.Object
}

// object returns what an entry holds, in a copy that the caller owns.
func (s *resource) object(e entry) (runtime.Object, error) {
	d := e.last.Load()
	if d == nil || d.by != s {
		obj := s.newObject()
		if _, _, err := s.codec.Decode(e.data, nil, obj); err != nil {
			return nil, err
		}
		if err := versioner.UpdateObject(obj, uint64(e.rev)); err != nil {
			return nil, err
		}
		d = &decoded{s, obj}
		e.last.Store(d)
	}
	return d.obj.DeepCopyObject(), nil
}

// read puts what an entry holds into out.
func (s *resource) read(e entry, out runtime.Object) error {
	obj, err := s.object(e)
	if err != nil {
		return err
	}
	from, to := reflect.ValueOf(obj), reflect.ValueOf(out)
	if from.Type() != to.Type() {
		return fmt.Errorf("kubesim: %s are read into %T, want %T", s.name, out, obj)
	}
	to.Elem().Set(from.Elem())
	return nil
}

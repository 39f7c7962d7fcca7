package store

import (
	"fmt"
	"reflect"
	"sync"
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
		var err error
		if d, err = s.decode(e); err != nil {
			return nil, err
		}
		e.last.Store(d)
	}
	return d.obj.DeepCopyObject(), nil
}

// decode returns what an entry is decoded to. Clusters that live through the same events, as those of
// equal schedules do, store the same bytes: they are decoded once.
func (s *resource) decode(e entry) (*decoded, error) {
	known := s.known.get(e.data)
	if known != nil && known.rev == e.rev {
		return &known.decoded, nil
	}
	var obj runtime.Object
	if known != nil {
		obj = known.obj.DeepCopyObject()
	} else {
		obj = s.newObject()
		if _, _, err := s.codec.Decode(e.data, nil, obj); err != nil {
			return nil, err
		}
	}
	if err := versioner.UpdateObject(obj, uint64(e.rev)); err != nil {
		return nil, err
	}
	d := &revision{decoded{s, obj}, e.rev}
	if known == nil {
		s.known.put(e.data, d)
	}
	return &d.decoded, nil
}

// revision is what was decoded last from some bytes, and the revision that had them.
type revision struct {
	decoded
	rev int64
}

// recent keeps a number of objects by the bytes they were decoded from. It is safe for concurrent use.
type recent struct {
	mu     sync.Mutex
	byData map[string]*revision
}

// What is kept: so many objects of one resource, none larger than this.
const (
	mostRecent    = 1024
	largestRecent = 16 << 10
)

func (r *recent) get(data []byte) *revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byData[string(data)]
}

func (r *recent) put(data []byte, d *revision) {
	if len(data) > largestRecent {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byData == nil || len(r.byData) >= mostRecent {
		r.byData = map[string]*revision{}
	}
	r.byData[string(data)] = d
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

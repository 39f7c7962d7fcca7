package sandbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Memory is what runs on one server have in common. It spares doing again what was done in an equal run, or earlier in the
// same one.
type Memory struct {
	// first is a cluster at its beginning; nil before the first run.
	first *store.Snapshot
	// objects are those that were decoded, by key, revision and bytes.
	objects map[string]decoded
	bytes   int // of these objects, as stored

	mu    sync.Mutex // of what steps use, which may have goroutines
	reads map[question]runtime.Object
	read  int // bytes that the answers were made from
}

// NewMemory returns an empty memory.
func NewMemory() *Memory {
	return &Memory{objects: map[string]decoded{}, reads: map[question]runtime.Object{}}
}

// What is kept is limited by its size as stored, which in memory is ten times as much. When there is more, all of it is forgotten.
const (
	mostObjects = 16 << 20
	mostReads   = 4 << 20
)

// tidy forgets objects if there are too many. Within a run, equal ones are the same.
func (m *Memory) tidy() {
	if m.bytes > mostObjects {
		clear(m.objects)
		m.bytes = 0
	}
}

// question is a digest of all that an answer depends on, and the size of that.
type question struct {
	digest [sha256.Size]byte
	bytes  int
}

// ask returns the question how something looks to a client if this is stored.
func ask(rows []store.Stored, about ...string) (q question) {
	h := sha256.New()
	for _, s := range about {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	for _, r := range rows {
		fmt.Fprintf(h, "%s %d %d ", r.Key, r.Rev, len(r.Data))
		_, _ = h.Write(r.Data) // never fails
		q.bytes += len(r.Data)
	}
	h.Sum(q.digest[:0])
	return q
}

// answer puts a copy of the answer to a question into an object, if it is known.
func (m *Memory) answer(q question, to runtime.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.reads[q]
	if ok {
		reflect.ValueOf(to).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
	}
	return ok
}

// learn keeps a copy of an answer.
func (m *Memory) learn(q question, answer runtime.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.read += q.bytes; m.read > mostReads {
		clear(m.reads)
		m.read = q.bytes
	}
	m.reads[q] = answer.DeepCopyObject()
}

// reader is a client that remembers what it was answered. Actors and expectations ask again and again, and an answer
// depends on nothing but what is stored.
type reader struct {
	client.Client
	box *Sandbox
}

// Get reads one object.
func (r reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	again := func() error { return r.Client.Get(ctx, key, obj, opts...) }
	gvk, err := r.GroupVersionKindFor(obj)
	if err != nil || len(opts) > 0 || ctx.Err() != nil {
		return again()
	}
	kind, digest, ok := r.box.Server.Plain(r.box.DB, gvk)
	if !ok {
		return again()
	}
	row, found := r.box.DB.Row(kind.Key(key.Namespace, key.Name))
	if !found {
		return again()
	}
	q := ask([]store.Stored{row}, reflect.TypeOf(obj).String(), gvk.String(), digest)
	if r.box.Memory.answer(q, obj) {
		return nil
	}
	if err := again(); err != nil {
		return err
	}
	if now, _ := r.box.DB.Row(row.Key); now.Rev == row.Rev {
		r.box.Memory.learn(q, obj)
	}
	return nil
}

// List reads objects.
func (r reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	again := func() error { return r.Client.List(ctx, list, opts...) }
	q, rev, ok := r.askList(list, opts)
	if !ok || ctx.Err() != nil {
		return again()
	}
	if r.box.Memory.answer(q, list) {
		list.SetResourceVersion(fmt.Sprint(rev))
		return nil
	}
	if err := again(); err != nil {
		return err
	}
	if r.box.DB.Revision() == rev {
		r.box.Memory.learn(q, list)
	}
	return nil
}

// askList returns the question that a list is the answer to, and the revision that it shows; false if it cannot be told.
func (r reader) askList(list client.ObjectList, opts []client.ListOption) (q question, rev int64, ok bool) {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Limit != 0 || o.Continue != "" || o.Raw != nil {
		return q, 0, false
	}
	gvk, err := r.GroupVersionKindFor(list)
	name, isList := strings.CutSuffix(gvk.Kind, "List")
	if err != nil || !isList {
		return q, 0, false
	}
	kind, digest, ok := r.box.Server.Plain(r.box.DB, schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: name})
	if !ok {
		return q, 0, false
	}
	prefix := kind.Prefix + "/"
	if kind.Namespaced && o.Namespace != "" {
		prefix += o.Namespace + "/"
	}
	rows, rev := r.box.DB.Under(prefix)
	about := []string{reflect.TypeOf(list).String(), gvk.String(), digest, prefix}
	if o.LabelSelector != nil {
		about = append(about, "labels "+o.LabelSelector.String())
	}
	if o.FieldSelector != nil {
		about = append(about, "fields "+o.FieldSelector.String())
	}
	return ask(rows, about...), rev, true
}

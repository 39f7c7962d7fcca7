package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// target is an object that was written to. Versions and forms of its kind are the same object.
type target struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// write is the last write to a target.
type write struct {
	at time.Time
	// version is that of the answer. It is empty if deleted is set, which says that the object is gone, or has
	// begun to go.
	version string
	deleted bool
	// uid is the object's; empty if it was deleted by its name.
	uid types.UID
	// answer is the object as the API server answered, of kind; nil after the pass, and if it did not answer with the object.
	answer client.Object
	kind   schema.GroupVersionKind
}

// ledger is what was written through [Run.Client] for one object.
type ledger struct {
	// unseen are the writes that the cache may not show yet.
	unseen map[target]write
	// hidden are targets that the cache does not hold at all, such as those outside its selectors.
	hidden map[target]bool
	// live are the kinds that are read live in this pass, because the cache lags too far behind.
	live map[schema.GroupKind]bool
	// sweeping: what the cache shows will be removed from unseen.
	sweeping bool
}

// mostHidden bounds ledger.hidden. To forget one costs a wait of [staleLimit] when it is written again.
const mostHidden = 100

func (l *ledger) hide(t target) {
	if l.hidden == nil || len(l.hidden) >= mostHidden {
		l.hidden = map[target]bool{}
	}
	l.hidden[t] = true
}

// release drops the answers at the end of a pass: the next one reads what it needs.
func (l *ledger) release() {
	for t, w := range l.unseen {
		if w.answer != nil {
			w.answer = nil
			l.unseen[t] = w
		}
	}
}

// knowledge is what a read of a target has to respect.
type knowledge struct {
	write   write
	written bool
	hidden  bool
	live    bool
	// version and uid are of the object of the pass as the API server last had it, for a read of that.
	version string
	uid     types.UID
}

func (k knowledge) nothing() bool { return !k.written && !k.hidden && k.version == "" }

// shownBy reports whether the result of a read from the cache is as new as what is known. err is nil or "not found".
func (k knowledge) shownBy(obj client.Object, err error) bool {
	if err != nil {
		return k.written && k.write.deleted || !k.written && !k.hidden
	}
	if k.uid == obj.GetUID() && older(obj.GetResourceVersion(), k.version) {
		return false
	}
	return !k.written || k.write.shownBy(obj)
}

// shownBy reports whether an object in the cache is as new as the write.
func (w write) shownBy(obj client.Object) bool {
	if w.deleted { // a namesake is another object
		return w.uid != "" && obj.GetUID() != w.uid || !obj.GetDeletionTimestamp().IsZero()
	}
	return !older(obj.GetResourceVersion(), w.version)
}

// copyInto copies the answer into obj, if it has all that obj may hold.
func (w write) copyInto(obj client.Object, gvk schema.GroupVersionKind) bool {
	if w.answer == nil || w.kind != gvk {
		return false
	}
	from := w.answer.DeepCopyObject()
	if reflect.TypeOf(from) == reflect.TypeOf(obj) {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from).Elem())
		return true
	}
	if _, part := from.(*metav1.PartialObjectMetadata); part {
		return false
	}
	data, err := json.Marshal(from)
	if err != nil {
		return false
	}
	empty(obj)
	if err := json.Unmarshal(data, obj); err != nil {
		return false
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return true
}

// empty makes obj an empty object or list of its kind. What a read from the cache left in it may belong to the cache.
func empty(obj runtime.Object) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().SetZero()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
}

// answerOf returns a private copy of the answer to a write, with its kind.
func answerOf(obj runtime.Object, scheme *runtime.Scheme) (client.Object, schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, gvk, fmt.Errorf("find the kind of a %T: %w", obj, err)
	}
	o, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, gvk, fmt.Errorf("%T has no metadata", obj)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, gvk, nil
}

// configured returns the object that the answer to an apply left in its configuration.
func configured(obj runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode what was applied: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode what was applied: %w", err)
	}
	return u, nil
}

// noteWrite notes a write of t for the object key. self: it is that object.
func (m *memory) noteWrite(key types.NamespacedName, t target, w write, self bool) {
	m.with(key, func(r *remembered) {
		if old, was := r.ledger.unseen[t]; was && !w.deleted && !old.deleted && older(w.version, old.version) {
			return // answers may overtake one another
		}
		if r.ledger.unseen == nil {
			r.ledger.unseen = map[target]write{}
		}
		r.ledger.unseen[t] = w
		if self && !w.deleted {
			r.know(w.version, w.uid)
		}
	})
}

// known returns what is known of t from the passes over key. self: it is that object.
func (m *memory) known(key types.NamespacedName, t target, self bool) (k knowledge) {
	m.with(key, func(r *remembered) {
		k.write, k.written = r.ledger.unseen[t]
		k.hidden, k.live = r.ledger.hidden[t], r.ledger.live[t.kind]
		if self {
			k.version, k.uid = r.known, r.knownUID
		}
	})
	return k
}

// shown notes that the cache holds t.
func (m *memory) shown(key types.NamespacedName, t target) {
	m.with(key, func(r *remembered) { delete(r.ledger.hidden, t) })
}

// writesOf returns the unseen writes of a kind for the object key, and whether the kind is read live in this pass.
func (m *memory) writesOf(key types.NamespacedName, kind schema.GroupKind) (all map[target]write, live bool) {
	m.with(key, func(r *remembered) {
		live = r.ledger.live[kind]
		for t, w := range r.ledger.unseen {
			if t.kind != kind || r.ledger.hidden[t] {
				continue
			}
			if all == nil {
				all = map[target]write{}
			}
			all[t] = w
		}
	})
	return all, live
}

// unseen forgets what the cache shows of the writes for key, and returns for how long it has not shown the oldest of the
// others; zero if a pass may begin. A kind that lags by [staleLimit] is read live in that pass, and an object that the cache
// does not hold at all is not waited for again.
func (m *memory) unseen(ctx context.Context, key types.NamespacedName, v *views, now time.Time) (lag time.Duration) {
	var all map[target]write
	var hidden map[target]bool
	m.with(key, func(r *remembered) {
		r.ledger.live = nil
		if len(r.ledger.unseen) > 0 {
			all, hidden = maps.Clone(r.ledger.unseen), maps.Clone(r.ledger.hidden)
		}
	})
	if all == nil {
		return 0
	}
	over, live := judge(ctx, all, hidden, v, now)
	m.with(key, func(r *remembered) {
		for t, hide := range over {
			if hide {
				r.ledger.hide(t)
			}
			if r.ledger.unseen[t].at.Equal(all[t].at) {
				delete(r.ledger.unseen, t)
			}
		}
		r.ledger.live = live
	})
	for t, w := range all {
		if _, is := over[t]; !is && !live[t.kind] {
			lag = max(lag, now.Sub(w.at), 1)
		}
	}
	return lag
}

// judge returns the writes that need not be waited for any more, each with whether the cache does not hold its target, and
// the kinds that lag by [staleLimit].
func judge(ctx context.Context, all map[target]write, hidden map[target]bool, v *views, now time.Time) (over map[target]bool, live map[schema.GroupKind]bool) {
	over, live = map[target]bool{}, map[schema.GroupKind]bool{}
	for t, w := range all {
		seen, missing := v.shows(ctx, t, w)
		late := !seen && now.Sub(w.at) >= staleLimit
		if late {
			live[t.kind] = true
		}
		if seen || missing && (late || hidden[t]) {
			over[t] = missing && (seen || late)
		}
	}
	return over, live
}

// sweepLater forgets the writes for key once the cache shows them, though no pass may follow.
func (m *memory) sweepLater(ctx context.Context, key types.NamespacedName, v *views) {
	var begin bool
	m.with(key, func(r *remembered) { begin, r.ledger.sweeping = !r.ledger.sweeping, true })
	if begin {
		time.AfterFunc(staleLimit, func() { m.sweep(ctx, key, v, staleLimit) })
	}
}

func (m *memory) sweep(ctx context.Context, key types.NamespacedName, v *views, every time.Duration) {
	m.mu.Lock()
	r, is := m.objects[key]
	var all map[target]write
	if is {
		all = maps.Clone(r.ledger.unseen)
	}
	m.mu.Unlock()
	for t, w := range all {
		if seen, missing := v.shows(ctx, t, w); !seen || missing {
			delete(all, t)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, is = m.objects[key]; !is {
		return
	}
	for t, w := range all {
		if r.ledger.unseen[t].at.Equal(w.at) {
			delete(r.ledger.unseen, t)
		}
	}
	r.ledger.release()
	if r.ledger.sweeping = len(r.ledger.unseen) > 0; r.ledger.sweeping {
		every = min(2*every, 10*time.Minute)
		time.AfterFunc(every, func() { m.sweep(ctx, key, v, every) })
	}
}

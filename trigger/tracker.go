package trigger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/kindcache"
)

// Tracker reads objects for passes, and wakes the object of a pass when one that it read changes, appears or is deleted:
// [Tracker.Get] is all that declares the watch. What the next pass does not read is forgotten when that pass ends.
//
// A kind is watched from the first read on, all its objects with one watch, until nobody has read it for the time Idle. The
// form of what is read is the form of what is kept: for *metav1.PartialObjectMetadata, only metadata is watched. So it is for
// Secrets, which are read with a request each. The API server need not serve the kind yet: when it does, those are woken who
// asked for it.
//
// Pass a Tracker by pointer to one controller. All methods are safe for concurrent use.
type Tracker[T client.Object] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Kinds are empty objects of the kinds that passes read. The operator gets the permission to list and watch them.
	// Others can be read, too, if loop.Options.Needs has the permission.
	Kinds []client.Object
	// Idle is for how long a kind is watched that nobody reads any more. Zero means a minute.
	Idle time.Duration

	mu     sync.Mutex
	target Target[T]
	pool   *kindcache.Pool // nil until Attach
	queue  queue
	ctx    context.Context //nolint:containedctx // the life of the watches
	health *health
	kinds  map[kindcache.ID]*tracked
	leases map[types.NamespacedName]map[reading]*lease
}

// tracked is a kind that passes read.
type tracked struct {
	held *kindcache.Held
	// readers are those who read an object of the kind, by object.
	readers map[types.NamespacedName]map[types.NamespacedName]*lease
	idle    *time.Timer // nil if somebody reads the kind
	problem error
}

// reading is what a pass reads.
type reading struct {
	kind kindcache.ID
	key  types.NamespacedName
}

// lease is what is known of a reading.
type lease struct {
	// now: the pass under way reads it. took: version is what it read first; empty if there was no such object.
	now, took bool
	version   string
	failed    bool
}

func (*Tracker[T]) source(T) {}

// Check implements [Source].
func (t *Tracker[T]) Check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.pool != nil:
		return errors.New("a trigger.Tracker is the source of two controllers; make one for each")
	case t.Idle < 0:
		return fmt.Errorf("a trigger.Tracker has idle time %s; leave it zero for a minute", t.Idle)
	}
	return checkKinds("a trigger.Tracker", t.Kinds)
}

// Watches implements [Source]. What is watched is among the needs, because the cluster may not serve it yet.
func (*Tracker[T]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (t *Tracker[T]) Needs() []Need { return needsOf(t.Kinds) }

// Attach implements [Source].
func (t *Tracker[T]) Attach(target Target[T]) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target, t.pool = target, poolOf(target)
	t.kinds, t.leases = map[kindcache.ID]*tracked{}, map[types.NamespacedName]map[reading]*lease{}
	if t.health, err = attachHealth(target, t.Name, 0, nil); err != nil {
		return err
	}
	target.Passes(t.ended)
	return target.Watch(source.Func(func(ctx context.Context, q queue) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ctx, t.queue = ctx, q
		t.pool.Start(ctx)
		return nil
	}))
}

// Get reads an object for the pass over of, like a client: for an object that does not exist, the error is one of
// apierrors.IsNotFound, and for a kind that the API server does not serve, one of meta.IsNoMatchError. After any error, too,
// the object of the pass is woken when there is something to read. The first read of a kind waits up to 10 s for the cache,
// which may lag behind what the operator itself has just written.
func (t *Tracker[T]) Get(ctx context.Context, of T, key types.NamespacedName, into client.Object) error {
	by := client.ObjectKeyFromObject(of)
	what, k, err := t.lease(by, key, into)
	if err != nil {
		return err
	}
	reader, err := awaited(ctx, k.held, wayOfTracker)
	if err != nil {
		t.failed(by, what)
		return err
	}
	if isSecret(into) {
		return t.live(ctx, by, what, into)
	}
	t.mu.Lock() // no event comes between the read and the note of its version
	defer t.mu.Unlock()
	err = reader.Get(ctx, key, into)
	t.took(by, what, into.GetResourceVersion(), err)
	return err
}

const wayOfTracker = "Kinds of the trigger.Tracker or to loop.Options.Needs"

// lease notes that a pass reads an object.
func (t *Tracker[T]) lease(by, key types.NamespacedName, into client.Object) (reading, *tracked, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		return reading{}, nil, errors.New("a trigger.Tracker reads in the passes of its controller; put it into loop.Options.Sources")
	}
	form := into
	if isSecret(into) {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(secretKind)
		form = m
	}
	id, err := kindcache.IDOf(form, t.target.Manager.GetScheme())
	if err != nil {
		return reading{}, nil, err
	}
	k := t.kinds[id]
	if k == nil {
		held, err := t.pool.Hold(form)
		if err != nil {
			return reading{}, nil, err
		}
		k = &tracked{held: held, readers: map[types.NamespacedName]map[types.NamespacedName]*lease{}}
		t.kinds[id] = k
		go t.follow(t.ctx, k)
	}
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}
	what := reading{id, key}
	l := t.leases[by][what]
	if l == nil {
		l = &lease{}
		put(t.leases, by, what, l)
		put(k.readers, key, by, l)
	}
	l.now = true
	return what, k, nil
}

func put[A, B comparable, V any](in map[A]map[B]V, a A, b B, v V) {
	if in[a] == nil {
		in[a] = map[B]V{}
	}
	in[a][b] = v
}

// failed notes that a pass could not read an object.
func (t *Tracker[T]) failed(by types.NamespacedName, what reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.leases[by][what]; l != nil {
		l.failed = true
	}
}

// took notes what a pass read. Of several versions that it reads, the first counts. The caller holds the lock.
func (t *Tracker[T]) took(by types.NamespacedName, what reading, version string, err error) {
	l := t.leases[by][what]
	if l == nil {
		return
	}
	if err != nil {
		version = ""
	}
	l.failed = err != nil && !apierrors.IsNotFound(err)
	if !l.took {
		l.took, l.version = true, version
	}
}

// unread is the version of an object that is being read with a request: whatever the watch shows meanwhile may come after the
// answer.
const unread = "0"

// live reads a Secret with a request.
func (t *Tracker[T]) live(ctx context.Context, by types.NamespacedName, what reading, into client.Object) error {
	t.mu.Lock()
	if l := t.leases[by][what]; l != nil && !l.took && l.version == "" {
		l.version = unread
	}
	t.mu.Unlock()
	err := t.target.Manager.GetAPIReader().Get(ctx, what.key, into)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took(by, what, into.GetResourceVersion(), err)
	return err
}

// ended forgets what a pass did not read.
func (t *Tracker[T]) ended(by types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, l := range t.leases[by] {
		if l.now {
			l.now, l.took = false, false
			continue
		}
		delete(t.leases[by], what)
		k := t.kinds[what.kind]
		if delete(k.readers[what.key], by); len(k.readers[what.key]) == 0 {
			delete(k.readers, what.key)
		}
		if len(k.readers) == 0 {
			k.idle = time.AfterFunc(cmp.Or(t.Idle, time.Minute), func() { t.giveUp(what.kind, k) })
		}
	}
	if len(t.leases[by]) == 0 {
		delete(t.leases, by)
	}
}

// giveUp ends the watch of a kind that nobody reads.
func (t *Tracker[T]) giveUp(id kindcache.ID, k *tracked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[id] != k || len(k.readers) > 0 {
		return
	}
	delete(t.kinds, id)
	k.held.Release()
	t.report()
}

// follow wakes those who read objects of a kind.
func (t *Tracker[T]) follow(ctx context.Context, k *tracked) {
	var life *kindcache.Life
	for s := range k.held.Changes(ctx) {
		if s.Life != life {
			if life = s.Life; life != nil {
				t.handle(life, k)
			} else {
				t.wake(k, func(*lease) bool { return true })
			}
		}
		if s.Synced {
			t.wake(k, func(l *lease) bool { return l.failed })
		}
		t.mu.Lock()
		k.problem = problem(k.held.ID(), s, wayOfTracker)
		t.report()
		t.mu.Unlock()
	}
}

// report says whether all kinds can be read. The caller holds the lock.
func (t *Tracker[T]) report() {
	problems := map[string]error{}
	for id, k := range t.kinds {
		if k.problem != nil && !errors.Is(k.problem, errNotSynced) { // a read waits for those
			problems[id.String()] = k.problem
		}
	}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		all = append(all, problems[name])
	}
	if err := errors.Join(all...); err != nil {
		t.health.fails(err)
		return
	}
	t.health.works()
}

// handle adds the handler of a life.
func (t *Tracker[T]) handle(life *kindcache.Life, k *tracked) {
	changed := func(obj any) {
		if o, ok := obj.(client.Object); ok {
			t.changed(k, o)
		}
	}
	life.Handle(life.Context, toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if o, ok := obj.(client.Object); ok {
				t.wakeReaders(k, client.ObjectKeyFromObject(o), func(l *lease) bool { return l.version != "" || l.failed })
			}
		},
	})
}

// changed wakes those who have not read this version of an object.
func (t *Tracker[T]) changed(k *tracked, obj client.Object) {
	version := obj.GetResourceVersion()
	t.wakeReaders(k, client.ObjectKeyFromObject(obj), func(l *lease) bool {
		return l.failed || l.version != version && (l.version == "" || !older(version, l.version)) && (l.took || !l.now || l.version != "")
	})
}

// wakeReaders wakes those who read an object, if their lease says so.
func (t *Tracker[T]) wakeReaders(k *tracked, key types.NamespacedName, whether func(*lease) bool) {
	t.mu.Lock()
	var keys []types.NamespacedName
	for by, l := range k.readers[key] {
		if whether(l) {
			keys = append(keys, by)
		}
	}
	q := t.queue
	t.mu.Unlock()
	for _, by := range keys {
		if t.target.Event(by) {
			add(q, by, false)
		}
	}
}

// wake wakes those who read any object of a kind, if their lease says so.
func (t *Tracker[T]) wake(k *tracked, whether func(*lease) bool) {
	t.mu.Lock()
	keys := slices.Collect(maps.Keys(k.readers))
	t.mu.Unlock()
	for _, key := range keys {
		t.wakeReaders(k, key, whether)
	}
}

// older reports whether version a precedes b; false if they cannot be compared.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

package trigger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Poll fetches values from outside the cluster at intervals, keeps the newest of each object for the reconciler,
// and wakes the objects whose values changed. It fetches only while the process leads. The first value of an
// object is a change, too. Objects are also woken when their fetches begin to fail and when they succeed again, so that
// passes can report [Poll.Err].
//
// /readyz names the source after three failures in a row while the last fetch of every object failed. One object whose
// fetches fail among others does not make the process unready.
//
// A wake-up does not count as an event of the object: a pending retry stays pending. Pass a Poll by pointer to one
// controller; use [Poll.Get] in its passes.
type Poll[T client.Object, V any] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Every is the time between two fetches. Required.
	Every time.Duration
	// Fetch returns the value of one object. obj is the cache's own and must not be changed. It is called when the
	// object appears or its spec changes, and then at intervals that start at different times for different
	// objects, until the object is gone. Objects that a loop.Selector leaves to others are polled, too.
	Fetch func(ctx context.Context, obj T) (V, error)
	// FetchAll returns the values of all objects. One that it omits has no value any more. Exactly one of Fetch
	// and FetchAll is required.
	FetchAll func(ctx context.Context) (map[types.NamespacedName]V, error)
	// Same reports whether two values do not differ in what matters. Nil compares them as Kubernetes compares
	// objects. If it panics, they differ.
	Same func(a, b V) bool
	// Timeout is the deadline of a fetch. Zero means 30 seconds.
	Timeout time.Duration
	// Workers is how many calls of Fetch are made concurrently. Zero means 4.
	Workers int

	wakes  *wakes[T]
	health *health

	mu     sync.Mutex
	polled map[types.NamespacedName]*polled[V]
	err    error // of the last FetchAll
	// lines is how many failures for single objects were logged in the minute that began at since.
	lines int
	since time.Time
}

// polled is what is known of one object.
type polled[V any] struct {
	uid      types.UID // empty if FetchAll returned it
	value    V
	fetched  bool
	err      error
	failures int // in a row
	fetches  int
	due      time.Time
	// changed: the object has changed since the fetch under way began.
	changed bool
}

func (*Poll[T, V]) source(T) {}

// Get returns the newest value of an object, and whether there is one. It is kept while fetches fail.
func (p *Poll[T, V]) Get(obj T) (V, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.polled[client.ObjectKeyFromObject(obj)]
	if !ok || !known.fetched || known.uid != "" && known.uid != obj.GetUID() {
		var none V
		return none, false
	}
	return known.value, true
}

// Err returns why the last fetch for an object failed. It is nil if that succeeded, and before the first one.
func (p *Poll[T, V]) Err(obj T) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.FetchAll != nil {
		return p.err
	}
	if known, ok := p.polled[client.ObjectKeyFromObject(obj)]; ok && known.uid == obj.GetUID() {
		return known.err
	}
	return nil
}

// Check implements [Source].
func (p *Poll[T, V]) Check() error {
	switch {
	case (p.Fetch == nil) == (p.FetchAll == nil):
		return errors.New("a trigger.Poll needs either Fetch, for one object, or FetchAll, for all of them")
	case p.Every <= 0:
		return fmt.Errorf("a trigger.Poll needs Every, the time between two fetches; it is %s", p.Every)
	case p.Timeout < 0 || p.Workers < 0:
		return fmt.Errorf("a trigger.Poll has timeout %s and %d workers; leave them zero for 30 seconds and 4", p.Timeout, p.Workers)
	case p.wakes != nil:
		return errors.New("a trigger.Poll is the source of two controllers; make one for each")
	}
	return nil
}

// Watches implements [Source]: nothing but the controller's own objects.
func (*Poll[T, V]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (*Poll[T, V]) Needs() []Need { return nil }

// Attach implements [Source].
func (p *Poll[T, V]) Attach(target Target[T]) (err error) {
	p.polled = map[types.NamespacedName]*polled[V]{}
	if p.wakes, err = attachWakes(target); err != nil {
		return err
	}
	if p.health, err = attachHealth(target, p.Name, tolerated, nil); err != nil {
		return err
	}
	if p.FetchAll != nil {
		return target.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error { // it runs once this process leads
			p.pollAll(ctx)
			return nil
		}))
	}
	each := newSchedule(target, p.poll)
	if err := each.watch(p.appears, p.goes); err != nil {
		return err
	}
	workers := p.Workers
	if workers == 0 {
		workers = 4
	}
	return each.run(workers)
}

// pollAll polls all objects at once until ctx ends.
func (p *Poll[T, V]) pollAll(ctx context.Context) {
	failures := 0
	for {
		values, err := fetch(ctx, p.timeout(), "FetchAll", p.FetchAll)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		turned := (p.err == nil) != (err == nil)
		p.err = err
		p.mu.Unlock()
		wait := p.Every
		if err == nil {
			failures = 0
			p.health.works()
			p.take(values)
		} else {
			failures++
			p.health.fails(err)
			wait = p.backOff(failures)
		}
		if turned {
			p.wakes.all(ctx)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// take keeps the values of all objects and wakes those whose values changed.
func (p *Poll[T, V]) take(values map[types.NamespacedName]V) {
	var changed []types.NamespacedName
	p.mu.Lock()
	before := p.polled
	p.polled = make(map[types.NamespacedName]*polled[V], len(values))
	for key, value := range values {
		p.polled[key] = &polled[V]{value: value, fetched: true}
		if was, known := before[key]; !known || !p.same(was.value, value) {
			changed = append(changed, key)
		}
	}
	for key := range before {
		if _, has := values[key]; !has {
			changed = append(changed, key)
		}
	}
	p.mu.Unlock()
	p.wakes.put(changed...)
}

// appears notes an object that is new or that has a new spec, and reports whether to fetch its value now.
func (p *Poll[T, V]) appears(obj T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if known, ok := p.polled[key]; !ok || known.uid != obj.GetUID() {
		p.polled[key] = &polled[V]{uid: obj.GetUID()}
	}
	p.polled[key].due, p.polled[key].changed = time.Time{}, true
	return true
}

// goes forgets an object that is gone, which stops its polls.
func (p *Poll[T, V]) goes(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.polled, key)
	if len(p.polled) == 0 {
		p.health.works() // nothing is left that could say so
	}
}

// poll fetches the value of one object and returns after how long to do so again; zero means not at all.
func (p *Poll[T, V]) poll(ctx context.Context, obj T, share float64) time.Duration {
	key := client.ObjectKeyFromObject(obj)
	if wait, known := p.isDue(key, obj.GetUID()); !known || wait > 0 {
		return wait
	}
	value, err := fetch(ctx, p.timeout(), "Fetch", func(ctx context.Context) (V, error) { return p.Fetch(ctx, obj) })
	if ctx.Err() != nil {
		return 0
	}
	wait, news := p.note(key, obj.GetUID(), value, err, share)
	if news {
		p.wakes.put(key)
	}
	return wait
}

// failed reports a failure for one object, which is the n-th in a row. The caller holds the lock.
func (p *Poll[T, V]) failed(key types.NamespacedName, n int, err error) {
	said := false
	if p.someWork() {
		p.health.misses()
	} else {
		said = p.health.fails(fmt.Errorf("%s: %w", key, err))
	}
	if n > 1 || said {
		return
	}
	if time.Since(p.since) >= time.Minute {
		p.since, p.lines = time.Now(), 0
	}
	if p.lines++; p.lines <= linesPerMinute {
		p.health.log.Error(err, "the fetch for an object failed; it is tried again", "object", key, "stack", guard.Stack(err))
	}
}

// linesPerMinute is how many failures for single objects are logged in a minute. [Poll.Err] has all of them.
const linesPerMinute = 20

// someWork reports whether the last fetch of any object succeeded.
func (p *Poll[T, V]) someWork() bool {
	for _, one := range p.polled {
		if one.fetches > 0 && one.err == nil {
			return true
		}
	}
	return false
}

// isDue returns how long it is until the next fetch for an object, and whether the object is polled.
func (p *Poll[T, V]) isDue(key types.NamespacedName, uid types.UID) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.polled[key]
	if !ok || known.uid != uid {
		return 0, false
	}
	known.changed = false
	return time.Until(known.due), true
}

// note keeps what a fetch returned. It returns after how long the next one is due, and whether the object is to
// be woken.
func (p *Poll[T, V]) note(key types.NamespacedName, uid types.UID, value V, err error, share float64) (wait time.Duration, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.polled[key]
	if !ok || known.uid != uid || known.changed { // it went meanwhile, or is in the queue again
		return 0, false
	}
	news = (known.err == nil) != (err == nil)
	known.err = err
	known.fetches++
	if wait = p.Every; known.fetches == 1 { // the polls of objects that were seen at the same time spread
		wait = max(time.Duration(float64(p.Every)*share), 1)
	}
	if err != nil {
		known.failures++
		wait = p.backOff(known.failures)
		p.failed(key, known.failures, err)
	} else {
		p.health.works()
		news = news || !known.fetched || !p.same(known.value, value)
		known.value, known.fetched, known.failures = value, true, 0
	}
	known.due = time.Now().Add(wait)
	return wait, news
}

// same reports whether two values do not differ.
func (p *Poll[T, V]) same(a, b V) bool {
	if p.Same == nil {
		return equality.Semantic.DeepEqual(a, b)
	}
	same := false
	if err := guard.Aside(code, "Same", func() { same = p.Same(a, b) }); err != nil {
		p.health.log.Error(err, "two values are taken to differ, because Same did not return", "stack", guard.Stack(err))
		return false
	}
	return same
}

// backOff is how long to wait after the n-th failure in a row: a second, and twice as long each time, but not
// longer than Every or a minute.
func (p *Poll[T, V]) backOff(n int) time.Duration {
	return min(time.Second<<min(n-1, 20), max(p.Every, time.Minute))
}

func (p *Poll[T, V]) timeout() time.Duration {
	if p.Timeout == 0 {
		return 30 * time.Second
	}
	return p.Timeout
}

// fetch calls f under a deadline. A panic is an error.
func fetch[V any](ctx context.Context, timeout time.Duration, method string, f func(context.Context) (V, error)) (value V, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if crash := guard.Aside(code, method, func() { value, err = f(ctx) }); crash != nil {
		return value, crash
	}
	return value, err
}

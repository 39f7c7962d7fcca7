package trigger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/kindcache"
)

// Dynamic are sources that come and go while the controller runs: each a [Kind], an [Owned] or a [Reference]. A source for a
// kind that the API server does not serve sleeps until the kind's CRD is installed, and sleeps again when that is deleted.
//
// Sources of the same kind share a watch, which ends with the last of them. What they watch is not in the manager's cache:
// read it with [Dynamic.Get] and [Dynamic.List]. Do not read it with loop.Run.Client, which would start a watch that never ends.
//
// Pass a Dynamic by pointer to one controller. All methods are safe for concurrent use.
type Dynamic[T client.Object] struct {
	// Name is the name in logs, metrics and /readyz, followed by that of the source. Empty means one made of the
	// controller's name.
	Name string
	// Sources are those that are there from the start, by name.
	Sources map[string]Source[T]
	// Kinds are empty objects of the kinds that sources may watch that are added later. The operator gets the permission
	// to list and watch them.
	Kinds []client.Object

	mu     sync.Mutex
	target Target[T]
	pool   *kindcache.Pool // nil until Attach
	queue  queue           // nil until the controller starts
	ctx    context.Context //nolint:containedctx // the life of the sources
	added  map[string]*added[T]
}

// added is a source of a Dynamic.
type added[T client.Object] struct {
	name   string
	source switchable[T]
	held   *kindcache.Held
	health *health
	gate   *gate
	stop   context.CancelFunc // nil until it is started
}

func (*Dynamic[T]) source(T) {}

// Check implements [Source].
func (d *Dynamic[T]) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool != nil {
		return errors.New("a trigger.Dynamic is the source of two controllers; make one for each")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Sources)) {
		if _, err := switched(name, d.Sources[name]); err != nil {
			return err
		}
	}
	return checkKinds("a trigger.Dynamic", d.Kinds)
}

// switched returns a source that can be added.
func switched[T client.Object](name string, s Source[T]) (switchable[T], error) {
	if isNil(s) {
		return nil, fmt.Errorf("source %q of a trigger.Dynamic is nil; leave it out", name)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("source %q of a trigger.Dynamic: %w", name, err)
	}
	is, ok := s.(switchable[T])
	if !ok {
		return nil, fmt.Errorf("source %q of a trigger.Dynamic is a %T; it can be a Kind, an Owned or a Reference; put others into loop.Options.Sources", name, s)
	}
	if why := is.fixed(); why != "" {
		return nil, fmt.Errorf("source %q cannot come and go: %s; put it into loop.Options.Sources", name, why)
	}
	return is, nil
}

// Watches implements [Source]. What the sources watch is among the needs, because the cluster may not serve it yet.
func (*Dynamic[T]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (d *Dynamic[T]) Needs() []Need {
	kinds := slices.Clone(d.Kinds)
	for _, name := range slices.Sorted(maps.Keys(d.Sources)) {
		kinds = append(kinds, d.Sources[name].Watches()...)
	}
	return needsOf(kinds)
}

// Attach implements [Source].
func (d *Dynamic[T]) Attach(target Target[T]) error {
	if d.Name == "" {
		d.Name = target.Name
	}
	d.mu.Lock()
	d.target, d.pool, d.added = target, poolOf(target), map[string]*added[T]{}
	d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.Sources)) {
		if err := d.Add(name, d.Sources[name]); err != nil {
			return err
		}
	}
	if err := target.Manager.AddReadyzCheck("source-"+d.Name, d.check); err != nil {
		return fmt.Errorf("report whether source %s works: %w", d.Name, err)
	}
	return target.Watch(source.Func(d.start))
}

// start starts what was added before.
func (d *Dynamic[T]) start(ctx context.Context, q queue) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ctx, d.queue = ctx, q
	d.pool.Start(ctx)
	for _, a := range d.added {
		d.run(a) //nolint:contextcheck // it runs until the controller ends
	}
	return nil
}

// check is the part of /readyz.
func (d *Dynamic[T]) check(r *http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(d.added)) {
		if err := d.added[name].health.check(r); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

// Add adds a source, and wakes the objects that what it watches concerns. It returns at once: [Dynamic.Err] says whether
// the source works. It is an error if there is a source of that name.
func (d *Dynamic[T]) Add(name string, s Source[T]) error {
	is, err := switched(name, s)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil {
		return fmt.Errorf("source %q cannot be added yet: give the trigger.Dynamic to a controller, in loop.Options.Sources, or put the source into its Sources", name)
	}
	if d.added[name] != nil {
		return fmt.Errorf("trigger.Dynamic %s has a source %q; remove that first, or choose another name", d.Name, name)
	}
	held, err := d.pool.Hold(is.Watches()[0])
	if err != nil {
		return fmt.Errorf("add source %q: %w", name, err)
	}
	a := &added[T]{name: name, source: is, held: held, gate: &gate{}, health: newHealth(d.target, d.Name+"-"+name, 0, errNotSynced)}
	d.added[name] = a
	if d.queue != nil {
		d.run(a)
	}
	return nil
}

// Remove removes a source. When it returns, the source wakes nobody any more. A watch that no other source uses ends. It
// is an error if there is no source of that name.
func (d *Dynamic[T]) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.added[name]
	if a == nil {
		return fmt.Errorf("trigger.Dynamic %s has no source %q; it has %q", d.Name, name, slices.Sorted(maps.Keys(d.added)))
	}
	delete(d.added, name)
	a.gate.shut()
	if a.stop != nil {
		a.stop()
	}
	a.held.Release()
	a.health.end()
	return nil
}

// Err returns why a source does not work. It is nil if it does, and while the source sleeps.
func (d *Dynamic[T]) Err(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.added[name]
	if a == nil {
		return fmt.Errorf("trigger.Dynamic %s has no source %q", d.Name, name)
	}
	return problem(a.held.ID(), a.held.Status(), wayOfDynamic)
}

const wayOfDynamic = "Kinds of the trigger.Dynamic"

// run starts a source. The caller holds the lock.
func (d *Dynamic[T]) run(a *added[T]) {
	ctx, stop := context.WithCancel(d.ctx)
	a.stop = stop
	go func() {
		defer stop()
		var life *kindcache.Life
		slept := false
		for s := range a.held.Changes(ctx) {
			if s.Life != life {
				if life = s.Life; life != nil {
					d.wake(ctx, a, life)
				} else {
					d.sleep(ctx, a)
				}
			}
			if s.Absent && !slept {
				a.health.log.Info("the source sleeps until the API server serves its kind", "kind", a.held.ID().GroupKind().String())
			}
			slept = s.Absent
			d.note(a, s)
		}
	}()
}

// note takes over how the kind of a source is.
func (d *Dynamic[T]) note(a *added[T], s kindcache.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.added[a.name] != a {
		return // its metrics are gone
	}
	switch err := problem(a.held.ID(), s, wayOfDynamic); {
	case err == nil:
		a.health.works()
	case !errors.Is(err, errNotSynced): // nothing has failed yet
		a.health.fails(err)
	}
}

// wake has a source watch its kind while that lives.
func (d *Dynamic[T]) wake(ctx context.Context, a *added[T], life *kindcache.Life) {
	ctx, end := context.WithCancel(ctx)
	stay := context.AfterFunc(life.Context, end) //nolint:contextcheck // either may end first
	context.AfterFunc(ctx, func() { stay() })    // a life that others share keeps nothing of this source
	target := d.target
	target.Name, target.Log = d.Name+"-"+a.name, a.health.log
	target.Event, target.other = a.gate.event(d.target.Event), kindcache.While(ctx, life.Cache)
	watching, err := a.source.watching(target)
	if err == nil {
		err = watching.Start(ctx, a.gate.behind(d.queue))
	}
	if err != nil {
		a.health.fails(err)
	}
}

// sleep wakes all objects, behind all others: what the source watched is gone.
func (d *Dynamic[T]) sleep(ctx context.Context, a *added[T]) {
	if ctx.Err() != nil {
		return
	}
	q := a.gate.behind(d.queue)
	for _, key := range d.target.all(ctx) {
		if a.gate.event(d.target.Event)(key) {
			add(q, key, true)
		}
	}
}

// reader returns where a kind is read, if a source watches it in that form.
func (d *Dynamic[T]) reader(ctx context.Context, id kindcache.ID) (client.Reader, error) {
	d.mu.Lock()
	var held *kindcache.Held
	for _, a := range d.added {
		if a.held.ID() == id {
			held = a.held
		}
	}
	d.mu.Unlock()
	if held == nil {
		return nil, fmt.Errorf("no source of trigger.Dynamic %s watches %s in this form; add one first", d.Name, id.GroupKind())
	}
	return awaited(ctx, held, wayOfDynamic)
}

// Get reads an object of a kind that a source watches, from its cache and without a request. For a kind that the API server
// does not serve, the error is one of meta.IsNoMatchError. Secrets have no data.
func (d *Dynamic[T]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	id, err := d.id(obj)
	if err != nil {
		return err
	}
	reader, err := d.reader(ctx, id)
	if err != nil {
		return err
	}
	return reader.Get(ctx, key, obj, opts...)
}

// List is [Dynamic.Get] for a list.
func (d *Dynamic[T]) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	id, err := d.id(list)
	if err != nil {
		return err
	}
	reader, err := d.reader(ctx, id)
	if err != nil {
		return err
	}
	return reader.List(ctx, list, opts...)
}

// id returns the kind of an object or list.
func (d *Dynamic[T]) id(obj runtime.Object) (kindcache.ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil {
		return kindcache.ID{}, errors.New("a trigger.Dynamic reads once its controller is set up; put it into loop.Options.Sources")
	}
	return kindcache.IDOf(obj, d.target.Manager.GetScheme())
}

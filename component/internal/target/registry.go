package target

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// Options of a [Registry].
type Options struct {
	// Config, HTTPClient and Mapper are the manager's.
	Config     *rest.Config
	HTTPClient *http.Client
	Mapper     meta.RESTMapper
	// Scheme is for the clients of renderers and hooks.
	Scheme *runtime.Scheme
	Names  projection.Names
	// Changed is called as [projection.Options] says.
	Changed func(owner string, key projection.Key)
	// Wake has components reconciled. It must return at once.
	Wake  func(...types.NamespacedName)
	Allow Allow
	// Idle is how long a target is kept that no component uses. Zero means five minutes.
	Idle time.Duration
	// Count is called when a target beside the manager's own is started, or stopped. Nil means that nobody
	// counts.
	Count func(started bool)
	// IdleWatch is how long the objects of a kind are watched of which no component has any. Zero means
	// a minute.
	IdleWatch time.Duration
}

// Registry has the targets of the components of one controller.
type Registry struct {
	options Options
	// local is the target with the manager's own identity.
	local   *Target
	started chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	start   func(run func(context.Context)) (stop context.CancelFunc)
	ended   bool
	targets map[string]*entry
	members map[types.UID]*member
}

// entry is a target that runs.
type entry struct {
	*Target

	stop context.CancelFunc
	// components are those that use it; idle is since when there is none.
	components map[types.UID]types.NamespacedName
	idle       time.Time
}

// member is a component that uses a target; "" is the key of the manager's own.
type member struct {
	key    string
	target *Target
}

// New makes a registry, which works once it is started.
func New(o Options) (*Registry, error) {
	o.Idle = cmp.Or(o.Idle, 5*time.Minute)
	local, err := o.target(o.Config, o.HTTPClient, o.Mapper)
	if err != nil {
		return nil, err
	}
	return &Registry{
		options: o, local: local, started: make(chan struct{}),
		targets: map[string]*entry{}, members: map[types.UID]*member{},
	}, nil
}

// NeedLeaderElection reports that watching needs none.
func (r *Registry) NeedLeaderElection() bool { return false }

// Start runs the caches of the targets until ctx ends.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	r.start = func(run func(context.Context)) context.CancelFunc {
		ctx, stop := context.WithCancel(ctx)
		r.running.Go(func() { run(ctx) })
		return stop
	}
	r.mu.Unlock()
	close(r.started)
	r.running.Go(func() { r.sweep(ctx) })
	err := r.local.Cache.Start(ctx)
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.running.Wait()
	return err
}

// sweep stops targets that nobody needs.
func (r *Registry) sweep(ctx context.Context) {
	ticks := time.NewTicker(r.options.Idle / 4)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			r.mu.Lock()
			for key, e := range r.targets {
				if len(e.components) == 0 && now.Sub(e.idle) >= r.options.Idle {
					r.drop(key, e)
				}
			}
			r.mu.Unlock()
		}
	}
}

// drop stops a target. The caller holds the lock.
func (r *Registry) drop(key string, e *entry) {
	e.stop()
	delete(r.targets, key)
	r.counted(false)
}

// counted passes on that a target was started or stopped.
func (r *Registry) counted(started bool) {
	if r.options.Count != nil {
		r.options.Count(started)
	}
}

// Join returns the target of an identity and notes that a component uses it. The target that the
// component used before is stopped unless others use it: it was for credentials that do not count any
// more.
func (r *Registry) Join(ctx context.Context, uid types.UID, name types.NamespacedName, id Identity) (*Target, error) {
	select {
	case <-r.started:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the start of the caches: %w", ctx.Err())
	}
	if id.local() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.move(uid, "")
		r.members[uid] = &member{target: r.local}
		return r.local, nil
	}
	key := id.key()
	if t := r.joined(uid, name, key); t != nil {
		return t, nil
	}
	t, err := r.options.remote(ctx, id, func() { r.wake(key) }) // without the lock: it may send a request
	if err != nil {
		return nil, err
	}
	return r.add(uid, name, key, t)
}

// joined returns the target of a key if it runs.
func (r *Registry) joined(uid types.UID, name types.NamespacedName, key string) *Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.use(uid, name, key)
}

// use is joined for a caller that holds the lock.
func (r *Registry) use(uid types.UID, name types.NamespacedName, key string) *Target {
	e := r.targets[key]
	if e == nil {
		return nil
	}
	r.move(uid, key)
	e.components[uid] = name
	r.members[uid] = &member{key, e.Target}
	return e.Target
}

// add starts a target, unless somebody else did meanwhile.
func (r *Registry) add(uid types.UID, name types.NamespacedName, key string, t *Target) (*Target, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, fmt.Errorf("start a cache: %w", context.Canceled)
	}
	if r.targets[key] == nil {
		r.targets[key] = &entry{Target: t, stop: r.start(t.run), components: map[types.UID]types.NamespacedName{}}
		r.counted(true)
	}
	return r.use(uid, name, key), nil
}

// move takes a component off the target that it used, if it is to use another. The caller holds the lock.
func (r *Registry) move(uid types.UID, key string) {
	m := r.members[uid]
	if m == nil || m.key == key {
		return
	}
	m.target.Cache.Forget(uid)
	if e := r.targets[m.key]; e != nil {
		if delete(e.components, uid); len(e.components) == 0 {
			r.drop(m.key, e)
		}
	}
}

// Last returns the target that a component used last in this process, or nil.
func (r *Registry) Last(uid types.UID) *Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[uid]; m != nil {
		return m.target
	}
	return nil
}

// Leave notes that a component is gone.
func (r *Registry) Leave(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	delete(r.members, uid)
	if m == nil {
		return
	}
	m.target.Cache.Forget(uid)
	if e := r.targets[m.key]; e != nil {
		if delete(e.components, uid); len(e.components) == 0 {
			e.idle = time.Now()
		}
	}
}

// wake has the components of a target reconciled.
func (r *Registry) wake(key string) {
	r.mu.Lock()
	var names []types.NamespacedName
	if e := r.targets[key]; e != nil {
		for _, name := range e.components {
			names = append(names, name)
		}
	}
	r.mu.Unlock()
	r.options.Wake(names...)
}

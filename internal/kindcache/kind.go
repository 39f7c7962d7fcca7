package kindcache

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

const (
	// firstPause is the pause after the API server was found not to serve a kind, and after its CRD changed. It doubles
	// up to mostPause, or rarely where CRDs can be watched: kinds of other API servers have none.
	firstPause = 250 * time.Millisecond
	mostPause  = time.Minute
	rarely     = time.Hour
)

// kind is a kind that is in use.
type kind struct {
	ID

	pool *Pool
	// kick wakes run: a CRD of the group has changed.
	kick chan struct{}

	// The mutex of the pool protects the fields below.
	users   int
	stop    context.CancelFunc // nil before the pool starts
	status  Status
	changed chan struct{} // closed when the status changes
}

// start runs the kind. The caller holds the lock.
func (k *kind) start(ctx context.Context) {
	ctx, k.stop = context.WithCancel(ctx)
	go k.run(ctx)
}

func (k *kind) now() (Status, <-chan struct{}) {
	k.pool.mu.Lock()
	defer k.pool.mu.Unlock()
	return k.status, k.changed
}

// update changes the status.
func (k *kind) update(f func(*Status)) {
	k.pool.mu.Lock()
	defer k.pool.mu.Unlock()
	f(&k.status)
	close(k.changed)
	k.changed = make(chan struct{})
}

// run has the kind live as often as the API server serves it, until ctx ends.
func (k *kind) run(ctx context.Context) {
	var listening *listener
	defer func() { listening.end() }()
	pause := firstPause
	for again := false; ; again = true {
		mapper, err := k.mapping(again)
		if err == nil {
			listening.end()
			listening = nil
			var lived bool
			if lived, err = k.live(ctx, mapper); lived {
				pause = firstPause
			}
		}
		if ctx.Err() != nil {
			return
		}
		absent := meta.IsNoMatchError(err)
		k.update(func(s *Status) {
			if *s = (Status{Absent: absent, Failures: s.Failures + 1}); !absent {
				s.Err = err
			}
		})
		if absent && listening == nil && k.ID != crds() {
			listening = k.listen(ctx)
		}
		if k.pause(ctx, pause, absent && listening.hears()) {
			pause = firstPause
			continue
		}
		pause = min(2*pause, mostPause)
	}
}

// mapping returns a mapper that knows the kind. again: what the pool's knows of the API may be outdated.
func (k *kind) mapping(again bool) (meta.RESTMapper, error) {
	mapper, err := k.pool.options.Mapper, error(nil)
	if again {
		if mapper, err = apiutil.NewDynamicRESTMapper(k.pool.options.Config, k.pool.options.HTTPClient); err != nil {
			return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
		}
	}
	_, err = mapper.RESTMapping(k.GroupKind(), k.Version)
	return mapper, err
}

// pause waits until the time is over or a CRD of the group changes, and reports whether that was it.
func (k *kind) pause(ctx context.Context, d time.Duration, hears bool) bool {
	if hears && d >= mostPause {
		d = rarely
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.kick:
		return true
	}
	return false
}

// live watches the kind until ctx ends or the API server does not serve it any more. It reports whether its objects were
// known.
func (k *kind) live(ctx context.Context, mapper meta.RESTMapper) (lived bool, err error) {
	o := k.pool.options
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	requests := &requests{kind: k, cancel: cancel}
	c, err := cache.New(o.Config, cache.Options{
		HTTPClient: o.HTTPClient, Scheme: o.Scheme, Mapper: mapper, DefaultNamespaces: namespaces(o.Namespaces),
		DefaultTransform: cached.Strip, ReaderFailOnMissingInformer: true,
		NewInformer: requests.informer, DefaultWatchErrorHandler: quiet,
	})
	if err != nil {
		return false, fmt.Errorf("make a cache of %s: %w", k.Kind, err)
	}
	informer, err := c.GetInformer(ctx, k.Empty(), cache.BlockUntilSynced(false))
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", k.Kind, err)
	}
	life := &Life{Context: ctx, Cache: c, informer: informer}
	k.update(func(s *Status) { *s = Status{Life: life} }) // what went wrong before is over
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Start(ctx) // it fails only if it is started twice
	}()
	var synced atomic.Bool
	go func() {
		if c.WaitForCacheSync(ctx) {
			synced.Store(true)
			k.update(func(s *Status) { s.Synced = s.Life == life })
		}
	}()
	<-ctx.Done()
	k.update(func(s *Status) { s.Life, s.Synced = nil, false })
	<-ended
	return synced.Load(), context.Cause(ctx)
}

func namespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	all := map[string]cache.Config{}
	for _, name := range names {
		all[name] = cache.Config{}
	}
	return all
}

// quiet handles errors of watches, which the status says.
func quiet(context.Context, *toolscache.Reflector, error) {}

// Forbidden returns the error of the last request if the API server refused it.
func (s Status) Forbidden() error {
	if apierrors.IsForbidden(s.Err) {
		return s.Err
	}
	return nil
}

// crds is the kind of CRDs, of which metadata is enough.
func crds() ID {
	id, _ := IDOf(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}, nil)
	return id
}

// listener waits for CRDs.
type listener struct {
	held *Held
	deaf atomic.Bool
	stop context.CancelFunc
}

// hears reports whether changes of CRDs are told.
func (l *listener) hears() bool { return l != nil && !l.deaf.Load() }

func (l *listener) end() {
	if l != nil {
		l.stop()
		l.held.Release()
	}
}

// listen has the kind kicked when a CRD of its group changes.
func (k *kind) listen(ctx context.Context) *listener {
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{held: k.pool.hold(crds()), stop: cancel}
	go func() {
		var life *Life
		for s := range l.held.Changes(ctx) {
			if s.Life != nil && s.Life != life {
				life = s.Life
				k.hear(ctx, life)
			}
			if s.Absent || s.Forbidden() != nil {
				l.deaf.Store(true) // it is looked for now and then instead
				k.kicked()
				l.held.Release()
				return
			}
		}
	}()
	return l
}

// hear adds the handler that kicks the kind.
func (k *kind) hear(ctx context.Context, life *Life) {
	changed := func(obj any) {
		if o, ok := obj.(client.Object); ok && strings.HasSuffix(o.GetName(), "."+k.Group) {
			k.kicked()
		}
	}
	life.Handle(ctx, toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }})
}

func (k *kind) kicked() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

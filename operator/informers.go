package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// informers observes every list and watch request of the cache, so that readiness can report which
// kind cannot be read, and why.
type informers struct {
	scheme *runtime.Scheme

	mu  sync.Mutex
	all []*informer
}

// informer is the cache of one kind.
type informer struct {
	toolscache.ListerWatcher
	gvk    schema.GroupVersionKind
	synced func() bool

	mu  sync.Mutex
	err error // of the last request, nil if it succeeded
}

var errNotSynced = errors.New("not yet read completely")

// make implements NewInformer of the cache options.
func (i *informers) make(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	gvk, err := apiutil.GVKForObject(obj, i.scheme)
	if err != nil {
		gvk.Kind = fmt.Sprintf("%T", obj)
	}
	one := &informer{ListerWatcher: lw, gvk: gvk}
	made := toolscache.NewSharedIndexInformer(one, obj, resync, by)
	one.synced = made.HasSynced
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, one)
	return made
}

// ListWithContext lists the objects and remembers the result of the request.
func (i *informer) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := toolscache.ToListerWatcherWithContext(i.ListerWatcher).ListWithContext(ctx, o)
	i.went(ctx, err)
	return list, err
}

// WatchWithContext opens a watch and remembers the result of the request.
func (i *informer) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := toolscache.ToListerWatcherWithContext(i.ListerWatcher).WatchWithContext(ctx, o)
	i.went(ctx, err)
	return w, err
}

func (i *informer) went(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // being stopped is not a failure
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

func (i *informer) problem() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return i.err
	}
	if !i.synced() {
		return errNotSynced
	}
	return nil
}

// check returns an error unless each of kinds, and everything else in the cache, has been read and
// is being watched.
func (i *informers) check(kinds []schema.GroupVersionKind) func(*http.Request) error {
	return func(*http.Request) error {
		problems := map[schema.GroupKind]string{}
		for _, kind := range kinds {
			problems[kind.GroupKind()] = kind.GroupKind().String() + " is not watched yet"
		}
		i.mu.Lock()
		all := slices.Clone(i.all)
		i.mu.Unlock()
		for _, one := range all {
			delete(problems, one.gvk.GroupKind())
		}
		for _, one := range all {
			if err := one.problem(); err != nil {
				problems[one.gvk.GroupKind()] = fmt.Sprintf("%s: %v", one.gvk.GroupKind(), err)
			}
		}
		if len(problems) == 0 {
			return nil
		}
		return errors.New(strings.Join(slices.Sorted(maps.Values(problems)), "; "))
	}
}

package kindcache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// requests notes what became of the requests of one life of a kind. There are several informers if the objects of
// several namespaces are watched.
type requests struct {
	kind   *kind
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	errs map[*noted]error
}

// informer implements NewInformer of the options of a cache.
func (r *requests) informer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(&noted{lw, r}, obj, resync, by)
}

// went takes over what became of a request.
func (r *requests) went(ctx context.Context, of *noted, err error) {
	switch {
	case ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err): // being stopped, or having to list again, is no failure
		return
	case apierrors.IsNotFound(err):
		r.cancel(&meta.NoKindMatchError{GroupKind: r.kind.GroupKind(), SearchedVersions: []string{r.kind.Version}})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs == nil {
		r.errs = map[*noted]error{}
	}
	switch before := r.errs[of]; {
	case err == nil && before == nil:
		return
	case apierrors.IsForbidden(err) && apierrors.IsForbidden(before):
		err = before // lists and watches are refused in turn, and users read the error in statuses
	}
	r.errs[of] = err
	var all []error
	for _, err := range r.errs {
		if err != nil {
			all = append(all, err)
		}
	}
	slices.SortFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	r.kind.update(func(s *Status) {
		if s.Err = errors.Join(all...); s.Err == nil {
			s.Failures = 0
			return
		}
		s.Failures++
	})
}

// noted are the requests of one informer.
type noted struct {
	toolscache.ListerWatcher

	to *requests
}

// ListWithContext lists the objects and notes what became of it.
func (n *noted) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := toolscache.ToListerWatcherWithContext(n.ListerWatcher).ListWithContext(ctx, o)
	n.to.went(ctx, n, err)
	return list, err
}

// WatchWithContext opens a watch and notes what became of it.
func (n *noted) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := toolscache.ToListerWatcherWithContext(n.ListerWatcher).WatchWithContext(ctx, o)
	n.to.went(ctx, n, err)
	return w, err
}

package projection

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// refusedFor is how long a refusal counts that came after the objects of a kind were known. It is longer
// than an informer waits before it tries again.
const refusedFor = 2 * time.Minute

// refusals are the answers of an API server to watches that the user may not have. The zero value has
// none.
type refusals struct {
	mu    sync.Mutex
	known map[schema.GroupResource]refusal
	// news is closed when there is a refusal; nil if nobody waits.
	news chan struct{}
}

type refusal struct {
	err error
	at  time.Time
	// waiting: the objects were not known when somebody was told of the refusal.
	waiting bool
}

// handle takes over why an informer failed.
func (r *refusals) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) || status.Status().Details == nil {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	details := status.Status().Details
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[schema.GroupResource]refusal{}
	}
	r.known[schema.GroupResource{Group: details.Group, Resource: details.Kind}] = refusal{err: err, at: time.Now()}
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// of returns why the objects of a resource cannot be watched, and what is closed when there is news of
// that. synced: they were known once.
func (r *refusals) of(resource schema.GroupResource, synced bool) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.news == nil {
		r.news = make(chan struct{})
	}
	found, ok := r.known[resource]
	if !ok {
		return r.news, nil
	}
	if synced && (found.waiting || time.Since(found.at) > refusedFor) {
		delete(r.known, resource) // it is allowed now
		return r.news, nil
	}
	found.waiting = !synced
	r.known[resource] = found
	return r.news, found.err
}

package projection

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// sink takes what a stream brings.
type sink interface {
	// replace brings all objects as of a version: first, and after a gap.
	replace(objects []any, version string)
	// add brings an object that is new or changed, and remove one that is gone.
	add(obj any)
	remove(obj any)
	// bookmark says that there was nothing until a version.
	bookmark(version string)
}

// source says what a stream brings.
type source struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
	// namespace and name limit it; empty means any.
	namespace, name string
	// metadata: only that. Labelled: only objects with the label of the operator.
	metadata, labelled bool
	// transform makes what reaches the sink of what the API server sends.
	transform func(any) (any, error)
}

// opener returns what brings a source to a sink until its context ends. failed is called with the error
// of each attempt that failed.
type opener func(s source, to sink, failed func(context.Context, *toolscache.Reflector, error)) (run func(context.Context), err error)

// openerOf opens streams with the clients of a configuration.
func openerOf(o Options, labelled string) (opener, error) {
	config := rest.CopyConfig(o.Config)
	config.NegotiatedSerializer = nil
	contents, err := dynamic.NewForConfigAndClient(config, o.HTTPClient)
	if err != nil {
		return nil, err
	}
	metadataOnly, err := metadata.NewForConfigAndClient(config, o.HTTPClient)
	if err != nil {
		return nil, err
	}
	return func(s source, to sink, failed func(context.Context, *toolscache.Reflector, error)) (func(context.Context), error) {
		limit := func(l *metav1.ListOptions) metav1.ListOptions {
			if s.labelled {
				l.LabelSelector = labelled
			}
			if s.name != "" {
				l.FieldSelector = "metadata.name=" + s.name
			}
			return *l
		}
		lw := listWatch(contents.Resource(s.resource).Namespace(s.namespace), limit)
		prototype := runtime.Object(prototypeOf(s.kind))
		if s.metadata {
			lw, prototype = listWatchMetadata(metadataOnly.Resource(s.resource).Namespace(s.namespace), limit), &metav1.PartialObjectMetadata{}
		}
		r := toolscache.NewReflectorWithOptions(lw, prototype, store{s.transform, to}, toolscache.ReflectorOptions{
			Name: "component", TypeDescription: s.kind.String(),
		})
		return func(ctx context.Context) { runReflector(ctx, r, failed) }, nil
	}, nil
}

func prototypeOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

func listWatch(r dynamic.ResourceInterface, limit func(*metav1.ListOptions) metav1.ListOptions) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return r.List(ctx, limit(&o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return r.Watch(ctx, limit(&o))
		},
	}
}

func listWatchMetadata(r metadata.ResourceInterface, limit func(*metav1.ListOptions) metav1.ListOptions) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return r.List(ctx, limit(&o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return r.Watch(ctx, limit(&o))
		},
	}
}

// retryFirst and retryMost are how long a reflector waits after a failure.
const (
	retryFirst = 800 * time.Millisecond
	retryMost  = 30 * time.Second
)

// runReflector runs a reflector until ctx ends, with growing delays while it fails.
func runReflector(ctx context.Context, r *toolscache.Reflector, failed func(context.Context, *toolscache.Reflector, error)) {
	delay := retryFirst
	for ctx.Err() == nil {
		began := time.Now()
		if err := r.ListAndWatchWithContext(ctx); err != nil {
			failed(ctx, r, err)
		}
		if time.Since(began) > 2*retryMost {
			delay = retryFirst
		}
		timer := time.NewTimer(wait.Jitter(delay, 1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		delay = min(2*delay, retryMost)
	}
}

// store hands what a reflector stores over to a sink, as a [toolscache.TransformingStore]: the objects
// themselves are never collected.
type store struct {
	transform func(any) (any, error)
	to        sink
}

// Transformer implements [toolscache.TransformingStore].
func (s store) Transformer() toolscache.TransformFunc { return s.transform }

// Replace implements [toolscache.ReflectorStore].
func (s store) Replace(objects []any, version string) error {
	small := make([]any, len(objects))
	for i, obj := range objects {
		var err error
		if small[i], err = s.transform(obj); err != nil {
			return err
		}
	}
	s.to.replace(small, version)
	return nil
}

// Add implements [toolscache.ReflectorStore].
func (s store) Add(obj any) error {
	small, err := s.transform(obj)
	if err == nil {
		s.to.add(small)
	}
	return err
}

// Update implements [toolscache.ReflectorStore].
func (s store) Update(obj any) error { return s.Add(obj) }

// Delete implements [toolscache.ReflectorStore].
func (s store) Delete(obj any) error {
	small, err := s.transform(obj)
	if err == nil {
		s.to.remove(small)
	}
	return err
}

// Bookmark implements [toolscache.ReflectorBookmarkStore].
func (s store) Bookmark(version string) error {
	s.to.bookmark(version)
	return nil
}

// Resync implements [toolscache.ReflectorStore].
func (s store) Resync() error { return nil }

// streams are functions that run while their cache does. The zero value has none.
type streams struct {
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the watches, which outlive the passes that ask for them
	waiting []*stream
	ended   bool
	all     sync.WaitGroup
}

// stream is one of them.
type stream struct {
	run     func(context.Context)
	cancel  context.CancelFunc // nil before it runs
	stopped bool
}

// start runs what was begun before, too.
func (s *streams) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
	for _, t := range s.waiting {
		s.launch(t) //nolint:contextcheck // a watch outlives the pass that asks for it
	}
	s.waiting = nil
}

// begin runs a function until stop is called or the cache ends. stop does not wait for it.
func (s *streams) begin(run func(context.Context)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &stream{run: run}
	if s.ctx == nil {
		s.waiting = append(s.waiting, t)
	} else {
		s.launch(t)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.stopped = true; t.cancel != nil {
			t.cancel()
		}
	}
}

func (s *streams) launch(t *stream) {
	if s.ended || t.stopped {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	t.cancel = cancel
	s.all.Go(func() {
		defer cancel()
		t.run(ctx)
	})
}

// wait waits until all have ended, and lets no more begin.
func (s *streams) wait() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.all.Wait()
}

// refusedFor is how long a refusal counts that came after the objects were known. It is longer than a
// stream waits before it tries again.
const refusedFor = 2 * time.Minute

// refusal is the answer of an API server to a watch that the user may not have. The zero value is none.
type refusal struct {
	mu  sync.Mutex
	err error
	at  time.Time
	// waiting: the objects were not known when somebody was told of the refusal.
	waiting bool
	// news is closed when there is a refusal; nil if nobody waits.
	news chan struct{}
}

// handle takes over why a stream failed.
func (r *refusal) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) || status.Status().Details == nil {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	r.refuse(err)
}

// refuse tells those who wait why there is no watch.
func (r *refusal) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.at = err, time.Now()
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// of returns why the objects cannot be watched, and what is closed when there is news of that. synced:
// they were known once.
func (r *refusal) of(synced bool) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.news == nil {
		r.news = make(chan struct{})
	}
	if r.err == nil {
		return r.news, nil
	}
	if synced && (r.waiting || time.Since(r.at) > refusedFor) {
		r.err = nil // it is allowed now
		return r.news, nil
	}
	r.waiting = !synced
	return r.news, r.err
}

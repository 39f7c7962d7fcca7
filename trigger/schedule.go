package trigger

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/spread"
)

// schedule calls do for each object of the controller, again and again, while this process leads.
type schedule[T client.Object] struct {
	target Target[T]
	// do returns after how long to call it again for the object; zero or less means not before the object
	// changes. share, in [0, 1), is another one for each object.
	do func(ctx context.Context, obj T, share float64) time.Duration
	// queue is set when started is closed, and shut down when the controller stops.
	queue   workqueue.TypedDelayingInterface[types.NamespacedName]
	started chan struct{}
}

func newSchedule[T client.Object](target Target[T], do func(ctx context.Context, obj T, share float64) time.Duration) *schedule[T] {
	return &schedule[T]{target: target, do: do, started: make(chan struct{})}
}

// watch calls appears for each object that is new or has a new spec, and goes for each that is gone. If appears
// returns true, do is called for the object.
func (s *schedule[T]) watch(appears func(T) bool, goes func(types.NamespacedName)) error {
	met := func(obj T) {
		if appears(obj) {
			s.queue.Add(client.ObjectKeyFromObject(obj))
		}
	}
	objects := source.Kind(s.target.Manager.GetCache(), cached.New[T](), handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], _ queue) { met(e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], _ queue) {
			if news(e.ObjectOld, e.ObjectNew) {
				met(e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], _ queue) {
			goes(client.ObjectKeyFromObject(e.Object))
		},
	})
	return s.target.Watch(source.Func(func(ctx context.Context, q queue) error {
		s.queue = workqueue.NewTypedDelayingQueue[types.NamespacedName]()
		context.AfterFunc(ctx, s.queue.ShutDown)
		close(s.started)
		return objects.Start(ctx, q)
	}))
}

// news reports whether an object is another one, or has another spec. The spec of a kind without generations is all but
// its metadata and status. If nothing that the cache has of it differs, what differs is something that the cache leaves
// out, such as the data of Secrets.
func news(before, after client.Object) bool {
	switch {
	case before.GetUID() != after.GetUID(), before.GetGeneration() != after.GetGeneration():
		return true
	case after.GetGeneration() != 0, before.GetResourceVersion() == after.GetResourceVersion():
		return false
	}
	a, errA := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	b, errB := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if errA != nil || errB != nil {
		return true
	}
	for _, version := range []map[string]any{a, b} {
		unstructured.RemoveNestedField(version, "metadata", "resourceVersion")
		unstructured.RemoveNestedField(version, "metadata", "managedFields")
	}
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	for _, version := range []map[string]any{a, b} {
		delete(version, "metadata")
		delete(version, "status")
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// run has so many goroutines call do once this process leads.
func (s *schedule[T]) run(workers int) error {
	return s.target.Manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-s.started:
		case <-ctx.Done():
			return nil
		}
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() { s.work(ctx) })
		}
		<-ctx.Done()
		s.queue.ShutDown()
		wg.Wait()
		return nil
	}))
}

func (s *schedule[T]) work(ctx context.Context) {
	for {
		key, stopped := s.queue.Get()
		if stopped {
			return
		}
		if obj, found := s.read(ctx, key); found {
			if wait := s.do(ctx, obj, spread.Share(key, 0)); wait > 0 {
				s.queue.AddAfter(key, wait)
			}
		}
		s.queue.Done(key)
	}
}

// read returns the object as the cache has it.
func (s *schedule[T]) read(ctx context.Context, key types.NamespacedName) (T, bool) {
	obj := cached.New[T]()
	err := s.target.Manager.GetClient().Get(ctx, key, obj, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		s.target.Log.Error(err, "cannot read an object; it is read again after a second", "object", key)
		s.queue.AddAfter(key, time.Second)
	}
	return obj, err == nil
}

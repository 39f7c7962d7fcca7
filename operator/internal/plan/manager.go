package plan

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// still is a manager whose controllers are never started. What they need besides runs.
type still struct {
	manager.Manager

	// client reads from the API server: a pass of a plan must see the present, and the object of a file.
	client client.Client
	log    *log
	passes reconcile.Reconciler
	others []manager.Runnable
}

func (m *still) GetClient() client.Client    { return indexed{m.client, m.GetCache()} }
func (m *still) GetAPIReader() client.Reader { return m.client }

// indexed is a client that lists by the indexes of a cache, which the API server does not have.
type indexed struct {
	client.Client
	cache client.Reader
}

// List implements client.Reader.
func (c indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if o := (&client.ListOptions{}).ApplyOptions(opts); o.FieldSelector != nil && apierrors.IsBadRequest(err) {
		return c.cache.List(ctx, list, opts...)
	}
	return err
}

// Add implements manager.Manager.
func (m *still) Add(r manager.Runnable) error {
	switch r := r.(type) {
	case reconcile.Reconciler:
		if m.passes == nil {
			m.passes = r
		}
	case interface{ Warmup(context.Context) error }: // a controller of another kind of requests
	case *manager.Server:
	default:
		m.others = append(m.others, r)
	}
	return nil
}

// start starts the cache and the rest.
func (m *still) start(ctx context.Context, running *sync.WaitGroup) error {
	running.Go(func() { _ = m.GetCache().Start(ctx) })
	for _, r := range m.others {
		running.Go(func() { _ = r.Start(ctx) }) // that of a source waits for a queue, which a plan does not have
	}
	if !m.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("read the objects that the controller watches: %w", ctx.Err())
	}
	return nil
}

func (m *still) AddReadyzCheck(string, healthz.Checker) error            { return nil }
func (m *still) AddHealthzCheck(string, healthz.Checker) error           { return nil }
func (m *still) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// Elected implements manager.Manager.
func (m *still) Elected() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (m *still) GetEventRecorder(string) recorder.EventRecorder { return events{m.log} }

// events notes the events that the pass would record.
type events struct{ log *log }

// Eventf implements events.EventRecorder.
func (e events) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.log.told = append(e.log.told, kind+" "+reason+" "+fmt.Sprintf(note, args...))
}

// AnnotatedEventf implements events.AnnotatedEventRecorder.
func (e events) AnnotatedEventf(about, related runtime.Object, _ map[string]string, kind, reason, action, note string, args ...any) {
	e.Eventf(about, related, kind, reason, action, note, args...)
}

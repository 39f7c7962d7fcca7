package run

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GetInformer returns an informer whose handlers take time to see what is there already.
func (c mortalCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	return patient(c.Cache.GetInformer(ctx, obj, opts...))
}

// GetInformerForKind returns an informer whose handlers take time to see what is there already.
func (c mortalCache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	return patient(c.Cache.GetInformerForKind(ctx, kind, opts...))
}

func patient(i cache.Informer, err error) (cache.Informer, error) {
	if err != nil || i == nil {
		return i, err
	}
	return patientInformer{i}, nil
}

// patientInformer is an informer whose handlers have never synced at the moment at which they are added. Another goroutine shows
// them what is there. Who waits for that looks at once, and then every 100 ms, so without this it would be chance whether a
// process begins to reconcile now or 100 ms later.
type patientInformer struct{ cache.Informer }

// AddEventHandler adds a handler.
func (i patientInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return registered(i.Informer.AddEventHandler(h))
}

// AddEventHandlerWithResyncPeriod adds a handler.
func (i patientInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return registered(i.Informer.AddEventHandlerWithResyncPeriod(h, period))
}

// AddEventHandlerWithOptions adds a handler.
func (i patientInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return registered(i.Informer.AddEventHandlerWithOptions(h, o))
}

// RemoveEventHandler removes a handler.
func (i patientInformer) RemoveEventHandler(r toolscache.ResourceEventHandlerRegistration) error {
	if p, ok := r.(patientRegistration); ok {
		r = p.ResourceEventHandlerRegistration
	}
	return i.Informer.RemoveEventHandler(r)
}

func registered(r toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err != nil {
		return r, err
	}
	return patientRegistration{r, time.Now()}, nil
}

type patientRegistration struct {
	toolscache.ResourceEventHandlerRegistration
	since time.Time
}

// HasSynced reports whether the handler has seen all that was there.
func (r patientRegistration) HasSynced() bool {
	return time.Now().After(r.since) && r.ResourceEventHandlerRegistration.HasSynced()
}

package loop

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
)

// ownAnnotations wake every controller when they change. The record of the external thing
// is not among them: the loop itself writes it.
var ownAnnotations = []string{
	api.AnnotationPaused, api.AnnotationReconcile, api.AnnotationAccess,
	api.AnnotationAdoption, api.AnnotationDeletion, api.AnnotationEndpoint,
}

// newsFilter lets an update of the object itself pass only if it is news. The loop writes
// status, its finalizer and annotations outside the watched set, so none of its own writes
// pass, and neither does a status that somebody tampered with.
func newsFilter[T client.Object](m *memory, o Options[T], finalizer string) predicate.TypedPredicate[T] {
	watched := slices.Concat(ownAnnotations, o.WakeOn)
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			if statusChanged(e.ObjectOld, e.ObjectNew) {
				m.statusWritten(e.ObjectNew)
			}
			switch {
			case e.ObjectOld.GetUID() != e.ObjectNew.GetUID(),
				e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration(),
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero(),
				lost(e.ObjectOld, e.ObjectNew, finalizer),
				annotationChanged(e.ObjectOld, e.ObjectNew, watched):
				return true
			}
			return o.Generation == EveryChange && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// statusChanged tells whether what is ours in the status differs. Conditions of others are
// theirs to write.
func statusChanged(before, after client.Object) bool {
	a, ours := reporting(before)
	b, _ := reporting(after)
	return ours && (a.State != b.State || a.Message != b.Message || !conditions.EqualOwn(a.Conditions, b.Conditions))
}

// lost tells whether the finalizer was on before and is not on after.
func lost(before, after client.Object, finalizer string) bool {
	return finalizer != "" &&
		controllerutil.ContainsFinalizer(before, finalizer) && !controllerutil.ContainsFinalizer(after, finalizer)
}

func annotationChanged(before, after client.Object, keys []string) bool {
	a, b := before.GetAnnotations(), after.GetAnnotations()
	return slices.ContainsFunc(keys, func(k string) bool {
		x, had := a[k]
		y, has := b[k]
		return had != has || x != y
	})
}

// counted tells memory of each event that goes into the queue for an object of kind T, and of
// objects that go.
type counted[T client.Object] struct {
	handler.TypedEventHandler[T, reconcile.Request]
	c *Controller[T]
}

func countEvents[T client.Object](c *Controller[T]) handler.TypedEventHandler[T, reconcile.Request] {
	return counted[T]{TypedEventHandler: &handler.TypedEnqueueRequestForObject[T]{}, c: c}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (h counted[T]) Create(ctx context.Context, e event.TypedCreateEvent[T], q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	if !h.c.memory.stand(key, q) {
		h.c.memory.event(key)
		h.TypedEventHandler.Create(ctx, e, q)
	}
}

func (h counted[T]) Update(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
	key := client.ObjectKeyFromObject(e.ObjectNew)
	if h.c.memory.stand(key, q) {
		return
	}
	if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // one went and another came while nobody looked
		h.c.gone(e.ObjectOld, false)
	}
	h.c.memory.event(key)
	h.TypedEventHandler.Update(ctx, e, q)
}

func (h counted[T]) Delete(ctx context.Context, e event.TypedDeleteEvent[T], q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	if h.c.memory.fall(key) {
		return
	}
	h.c.gone(e.Object, !e.DeleteStateUnknown)
	h.c.memory.event(key)
	h.TypedEventHandler.Delete(ctx, e, q)
}

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
)

// ownAnnotations cause a pass of every controller when they change. The record of the external resource
// is not among them: the loop itself writes it.
var ownAnnotations = []string{
	api.AnnotationPaused, api.AnnotationReconcile, api.AnnotationAccess,
	api.AnnotationAdoption, api.AnnotationDeletion, api.AnnotationEndpoint, api.AnnotationInterval, api.AnnotationLateInit,
}

// newsFilter drops updates of the object itself that call for no pass. The loop writes status, its
// finalizer and annotations that are not watched, so all its own writes are dropped, and so is a status
// that another wrote.
func newsFilter[T client.Object](c *Controller[T]) predicate.TypedPredicate[T] {
	watched := slices.Concat(ownAnnotations, c.options.WakeOn)
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			if statusChanged(e.ObjectOld, e.ObjectNew) {
				c.memory.statusWritten(e.ObjectNew)
			}
			switch {
			case e.ObjectOld.GetUID() != e.ObjectNew.GetUID(),
				e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration(),
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero(),
				lost(e.ObjectOld, e.ObjectNew, c.finalizer),
				annotationChanged(e.ObjectOld, e.ObjectNew, watched),
				c.contentChanged(e.ObjectOld, e.ObjectNew),
				c.setBack(e.ObjectOld, e.ObjectNew):
				return true
			}
			return c.options.Generation == EveryChange && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// contentChanged reports whether an object of a kind without generations has changed. If nothing that the cache has of it
// differs, what differs is something that the cache leaves out, such as the data of Secrets.
func (c *Controller[T]) contentChanged(before, after T) bool {
	if after.GetGeneration() != 0 || before.GetResourceVersion() == after.GetResourceVersion() {
		return false
	}
	changed, err := c.fields.specChanged(before, after)
	return changed || err != nil || len(metadataChanges(before, after)) == 0 && c.fields.sameStatus(before, after)
}

// setBack reports whether another client made the status say that the present generation is not applied.
func (c *Controller[T]) setBack(before, after T) bool {
	if c.options.Generation == SpecOnly || c.wraps() { // an ordinary reconciler that replaces its status would wake itself
		return false
	}
	if c.observes {
		return *c.fields.observedGeneration(after) < min(*c.fields.observedGeneration(before), after.GetGeneration())
	}
	a, ours := reporting(before)
	b, _ := reporting(after)
	return ours && b.AppliedGeneration < min(a.AppliedGeneration, after.GetGeneration()) &&
		(len(after.GetManagedFields()) == 0 || // the cache leaves them out, and this may be a correction of ours
			b.AppliedGeneration == 0 || writtenByOthers(after, string(c.fieldOwner()), fieldApplied))
}

// statusChanged reports whether our part of the status differs. Conditions of others are
// theirs to write.
func statusChanged(before, after client.Object) bool {
	a, ours := reporting(before)
	b, _ := reporting(after)
	return ours && (a.State != b.State || a.Message != b.Message || !equalConditions(a.Conditions, b.Conditions, ownCondition))
}

// lost reports whether the finalizer is on before and not on after.
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

// counted notes in memory each event that goes into the queue for an object of kind T, and
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
	if e.IsInInitialList && h.c.memory.leads() && h.c.resume(e.Object, q) {
		return
	}
	if !h.c.memory.stand(key, q) {
		h.c.event(key, causeCreated)
		h.TypedEventHandler.Create(ctx, e, q)
	}
}

func (h counted[T]) Update(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
	key := client.ObjectKeyFromObject(e.ObjectNew)
	if h.c.memory.stand(key, q) {
		return
	}
	if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // deleted and created again in a gap of the watch
		h.c.gone(e.ObjectOld, false)
	}
	h.c.event(key, causeUpdated)
	h.TypedEventHandler.Update(ctx, e, q)
}

func (h counted[T]) Delete(ctx context.Context, e event.TypedDeleteEvent[T], q queue) {
	key := client.ObjectKeyFromObject(e.Object)
	if h.c.memory.fall(key) {
		return
	}
	h.c.gone(e.Object, !e.DeleteStateUnknown)
	h.c.event(key, causeDeleted)
	h.TypedEventHandler.Delete(ctx, e, q)
}

package loop

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/cached"
)

// Wrap returns a [Reconciler] that calls an ordinary reconciler of controller-runtime, so that it has the loop's
// retries, deadline, metrics and traces without being rewritten. It panics if r is nil.
//
// r is called as before: with the name of the object, also while the object is being deleted and once it is gone. It
// reads the object, and it writes its own finalizers and status. [WrapClient] makes its client. What r returns becomes an outcome as [FromResult] says.
// Failures for an object that is gone are retried like others, and are seen in metrics, logs and traces alone.
//
// The loop writes nothing to a kind without [api.Status], but for what [ObservedGeneration] says. To one with it, the
// loop writes the fields of [api.Status], of the conditions only Ready, Reconciling and Stalled, and Failed and Deleting
// if it meets nothing but conflicts. r must leave these alone, and must not clear them when it writes what is its own. All other fields
// and conditions of the status stay as r writes them.
//
// The result is for [New] itself. Package children refuses it.
//
// Updates of the object cause passes as [Options.Generation] says, which is stricter than the default of
// controller-runtime. [EveryChange] is the same.
func Wrap[T client.Object](r reconcile.Reconciler) Reconciler[T] {
	if r == nil {
		panic("loop: Wrap needs a reconciler; pass the value that implements Reconcile")
	}
	return wrapped[T]{r}
}

// FromResult returns the outcome for what an ordinary reconciler returns. A conflict becomes [Outdated], which is
// repeated at once and is no failure; another error [Fail], or [Terminal] if it is a terminal error of
// controller-runtime. Without an error, RequeueAfter becomes [After] and Requeue [Again].
func FromResult(result reconcile.Result, err error) Outcome {
	var o Outcome
	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
		cause := errors.Unwrap(err)
		if cause == nil || err.Error() != "terminal error: "+cause.Error() { // somebody added words
			cause = err
		}
		o = Terminal("TerminalError", cause)
	case apierrors.IsConflict(err):
		o = Fail(Outdated(err))
	case err != nil:
		o = Fail(err)
	case result.RequeueAfter > 0:
		o = After(result.RequeueAfter)
	case result.Requeue: //nolint:staticcheck // existing reconcilers use it
		o = Again()
	}
	if result.Priority != nil && *result.Priority < 0 {
		o = o.LowPriority()
	}
	return o
}

// wrapped is an ordinary reconciler as an author.
type wrapped[T client.Object] struct{ reconcile.Reconciler }

// Reconcile implements [Reconciler].
func (w wrapped[T]) Reconcile(ctx context.Context, r *Run[T]) Outcome {
	return FromResult(w.Reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r.Obj)}))
}

// wraps reports whether the author is an ordinary reconciler, which looks after deletions itself.
func (c *Controller[T]) wraps() bool { return isWrapped[T](c.author) }

func isWrapped[T client.Object](r Reconciler[T]) bool {
	_, is := r.(wrapped[T])
	return is
}

// reconcileDeletion is the pass of an ordinary reconciler over an object that is being deleted.
func (p *pass[T]) reconcileDeletion(ctx context.Context) ending {
	o := p.callReconcile(ctx)
	if isOutdated(o.err) {
		return p.metadataFailed(ctx, o.err)
	}
	next := p.schedule(o, ErrorOutcome{})
	if _, common := reporting(p.base); !common {
		return next
	}
	v := verdictOfCleanup(KeepUntilEvent())
	if o.failed() {
		v = verdictOfCleanup(CleanupFailed(o.err).Because(o.reason))
	}
	if err := p.commit(ctx, v); err != nil {
		return p.commitFailed(err, next)
	}
	return next
}

// reconcileAbsent is the pass of an ordinary reconciler over an object that is gone, of which only the name is left.
func (c *Controller[T]) reconcileAbsent(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	if !c.wraps() {
		c.memory.drop(key)
		c.ended(key)
		return reconcile.Result{}, nil
	}
	name := cached.New[T]()
	name.SetNamespace(key.Namespace)
	name.SetName(key.Name)
	name.GetObjectKind().SetGroupVersionKind(c.gvk)
	p := c.open(ctx, name, nil)
	end := p.reconcileAbsent(p.into(ctx))
	result, err := p.close(end)
	if end.after == 0 && (end.err == nil || end.never) {
		c.memory.drop(key)
	}
	return result, err
}

// reconcileAbsent calls the reconciler. Nothing is written, and without a reason no other pass follows.
func (p *pass[T]) reconcileAbsent(ctx context.Context) ending {
	o := p.callReconcile(ctx)
	if isOutdated(o.err) {
		return p.writeFailed(o.err)
	}
	next := p.schedule(o, ErrorOutcome{})
	if next.never || o.kind == kindDone {
		next.after = 0
	}
	return next
}

// The status of a kind with [api.Status] is written by the loop and by the reconciler. It may be a newer one than the
// pass has read, because the reconciler has written it since.

// foreignBesideReconciler reports whether a condition that the loop does not report is the reconciler's.
func (s *status[T]) foreignBesideReconciler(c metav1.Condition) bool {
	switch c.Type {
	case api.ConditionReady, api.ConditionReconciling, api.ConditionStalled:
		return false
	}
	return meta.FindStatusCondition(s.report.Conditions, c.Type) == nil
}

// sameCommon reports whether two versions of an object have the same part of the status that is the loop's.
func (s *status[T]) sameCommon(a, b T) bool {
	x, _ := reporting(a)
	y, _ := reporting(b)
	one, two := *x, *y
	one.Conditions, two.Conditions = nil, nil
	return equality.Semantic.DeepEqual(one, two) &&
		equalConditions(x.Conditions, y.Conditions, func(c metav1.Condition) bool { return !s.foreign(c) })
}

// confirm makes sure, before the first write of this process, that its cache was not behind the last write of the
// process before it. The write cannot be locked to the version of the pass instead, which ends as soon as the
// reconciler writes. It reports true if there is nothing to write to, or something else than was read.
func (s *status[T]) confirm(ctx context.Context) (over bool, err error) {
	if !s.common || s.c.memory.proven(s.base) {
		return false, nil
	}
	now, found, err := s.c.readLive(ctx, s.key)
	switch {
	case err != nil:
		return true, writeStatusError(err)
	case !found || now.GetUID() != s.base.GetUID():
		s.c.memory.sawNone(s.key, s.base.GetUID())
		return true, nil
	}
	s.c.memory.saw(now, string(s.c.fieldOwner()))
	if !s.sameCommon(now, s.base) {
		resource := schema.GroupResource{Group: s.c.gvk.Group, Resource: s.c.gvk.Kind}
		return true, apierrors.NewConflict(resource, s.key.Name, errors.New("its status is not as the pass has read it"))
	}
	return false, nil
}

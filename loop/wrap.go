package loop

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Wrap returns a [Reconciler] that calls an ordinary reconciler of controller-runtime, so that it has the loop's
// retries, deadline, metrics and traces without being rewritten. It panics if r is nil.
//
// r is called as before: with the name of the object, also while the object is being deleted and once it is gone. It
// reads the object, and it writes its own finalizers and status. The loop writes nothing to a kind without
// [api.Status]; to one with it, the conditions Ready, Reconciling and Stalled, state and message, which r then leaves
// to the loop. What r returns becomes an outcome as [FromResult] says.
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
func (c *Controller[T]) wraps() bool {
	_, is := c.author.(wrapped[T])
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

// reconcileAbsent calls an ordinary reconciler for an object that is gone.
func (c *Controller[T]) reconcileAbsent(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	w, is := c.author.(wrapped[T])
	if !is {
		c.memory.drop(key)
		return reconcile.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.deadline())
	defer cancel()
	var o Outcome
	crash := guard.Aside(code, "Reconcile", func() {
		o = FromResult(w.Reconciler.Reconcile(logf.IntoContext(ctx, c.log.WithValues("object", key)), reconcile.Request{NamespacedName: key}))
	})
	if crash != nil {
		o = Fail(crash)
	}
	switch {
	case o.kind == kindTerminal:
		c.memory.drop(key)
		return reconcile.Result{}, reconcile.TerminalError(o.err)
	case o.failed():
		return reconcile.Result{}, c.unhandled(key, o.err)
	}
	c.memory.with(key, func(r *remembered) { r.ladder.succeeded() })
	c.memory.drop(key)
	return reconcile.Result{RequeueAfter: max(o.after, o.soonest())}, nil
}

// soonest is the delay before a pass that is to come again without saying when.
func (o Outcome) soonest() time.Duration {
	if o.kind == kindAgain && o.after == 0 {
		return time.Second
	}
	return 0
}

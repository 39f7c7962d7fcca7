package loop

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/safelog"
	"github.com/trimtab-dev/trimtab/internal/spread"
)

// ending is how a pass ended, after its commit, and when the object comes again.
type ending struct {
	outcome string
	err     error // counted as a failure and retried after
	after   time.Duration
	low     bool
	never   bool // err is not retried without an event
}

// result returns the ending as the queue takes it.
func (e ending) result() (reconcile.Result, error) {
	switch {
	case e.err != nil && e.never && e.after == 0:
		return reconcile.Result{}, reconcile.TerminalError(safelog.Error(e.err))
	case e.err != nil: // controller-runtime logs it
		return reconcile.Result{}, safelog.Error(e.err)
	case e.low:
		return reconcile.Result{RequeueAfter: e.after, Priority: new(lowPriority)}, nil
	}
	return reconcile.Result{RequeueAfter: e.after}, nil
}

// limited returns for how long an object is not to be reconciled, because that was done often enough.
func (c *Controller[T]) limited(key types.NamespacedName) time.Duration {
	if c.options.RateLimit.Passes == 0 {
		return 0
	}
	var wait time.Duration
	c.memory.with(key, func(r *remembered) {
		now := time.Now()
		if wait = r.window.wait(now, c.options.RateLimit); wait > 0 {
			r.measured.limited = now.Add(wait)
		}
	})
	if wait > 0 {
		limited.WithLabelValues(c.name, c.gvk.Kind).Inc()
	}
	return wait
}

// policy is how failures are retried. No event can come that would let a vanished object be
// tried again after the last attempt, so there is no last one.
func (c *Controller[T]) policy(v *vanished) Retry {
	policy := c.options.Retry
	if v != nil {
		policy.Attempts = 0
	}
	return policy
}

// schedule notes the outcome in the ladder and says when the object comes again.
func (p *pass[T]) schedule(o Outcome, handled ErrorOutcome) ending {
	next := ending{outcome: o.kind.String(), low: o.low, after: p.c.options.maxInterval(p.key)}
	var again advice
	if o.Retried() {
		again = p.advice(o.err, max(o.after, handled.after))
		again.refused = again.refused || handled.kind == errorNoRetry
	}
	p.c.memory.with(p.key, func(r *remembered) {
		switch o.kind {
		case kindDone:
			next.low = true
			r.ladder.succeeded()
		case kindAfter:
			r.ladder.succeeded()
			next.after = o.after
		case kindAgain:
			if next.after = o.after; o.after > 0 {
				r.ladder.waiting()
				break
			}
			next.after = r.ladder.again(p.c.options.Retry)
		case kindWait:
			r.ladder.waiting()
		case kindTerminal:
			r.ladder.waiting()
			next.err, next.never = o.err, true
		case kindFail, kindFailAfter:
			p.retry(&next, r, o.err, again)
		}
	})
	return next
}

func (p *pass[T]) scheduleCleanup(o CleanupOutcome) ending {
	next := ending{outcome: "Keep", after: p.c.options.maxInterval(p.key)}
	if p.vanished != nil && (next.after == 0 || next.after > unheardOf) {
		next.after = unheardOf
	}
	var again advice
	if o.kind == cleanupFailed {
		again = p.advice(o.err, 0)
	}
	p.c.memory.with(p.key, func(r *remembered) {
		switch o.kind {
		case cleanupKeep:
			r.ladder.succeeded()
			next.after = o.after
		case cleanupFailed:
			next.outcome = "Fail"
			p.retry(&next, r, o.err, again)
		case cleanupKeepUntilEvent, cleanupDone:
			r.ladder.waiting()
		}
	})
	return next
}

// advice is what the author says about the retry after a failure.
type advice struct {
	// after replaces the delay of the policy if it is positive.
	after time.Duration
	// refused: there is to be none before the next event.
	refused bool
}

// shortestRetry is the shortest delay of a policy of the author's own.
const shortestRetry = 100 * time.Millisecond

// advice asks the author's own policy about a retry, unless the author has said already when it is due.
func (p *pass[T]) advice(err error, said time.Duration) advice {
	ask := p.c.options.Retry.Next
	if ask == nil || said > 0 {
		return advice{after: said}
	}
	var after time.Duration
	more := true
	if crash := p.call("Retry.Next", func() { after, more = ask(p.info.Attempt+1, err) }); crash != nil {
		return advice{}
	}
	if more {
		return advice{after: max(after, shortestRetry)}
	}
	return advice{refused: p.vanished == nil} // no event can come that would let a vanished object be tried again
}

// retry ends a pass that failed.
func (p *pass[T]) retry(next *ending, r *remembered, err error, how advice) {
	next.err = err
	if how.refused {
		next.never = !r.ladder.refused()
		return
	}
	wait, retried := r.ladder.failed(time.Now(), p.c.policy(p.vanished), how.after, p.share)
	if next.never = !retried; retried {
		next.after = wait
	}
}

// outdated ends a pass over an object that changed meanwhile: again with the fresh one, and no
// attempt is used up. What is refused as if it had changed, again and again, is a failure like any
// other.
func (p *pass[T]) outdated(err error) ending {
	var n int
	p.c.memory.with(p.key, func(r *remembered) { n = r.conflict(p.base) })
	if n >= mostConflicts {
		return p.unwrittenAgain(fmt.Errorf("work on the object, which is never as it was read: %w", err))
	}
	after := 20*time.Millisecond + time.Duration(p.share(0)*float64(30*time.Millisecond))
	return ending{outcome: outdatedPass, after: min(after<<min(n/2, 10), time.Second)}
}

// outdatedPass is the outcome of a pass that worked on an old copy.
const outdatedPass = "Conflict"

// mostConflicts is how many passes in a row may find that the object has changed. That takes some seconds.
const mostConflicts = 16

// writeFailed ends a pass whose own write was refused. It is repeated until the write
// succeeds, whatever the author's outcome was.
func (p *pass[T]) writeFailed(err error) ending {
	switch {
	case apierrors.IsNotFound(err):
		return ending{outcome: "Done"}
	case apierrors.IsConflict(err), isOutdated(err):
		return p.outdated(err)
	}
	return p.unwrittenAgain(err)
}

// unwrittenAgain ends a pass whose result is not written, however often it was tried.
func (p *pass[T]) unwrittenAgain(err error) ending {
	next := ending{outcome: "Fail", err: err}
	p.c.memory.with(p.key, func(r *remembered) {
		r.unwritten++
		next.after = min(time.Second<<min(r.unwritten-1, 10), 10*time.Minute)
	})
	return next
}

// metadataFailed ends a pass that could not put a finalizer on or take it off, and says so in
// status. It is repeated until the write succeeds.
func (p *pass[T]) metadataFailed(ctx context.Context, err error) ending {
	end := p.writeFailed(err)
	if end.err == nil || p.vanished != nil { // the object is gone, or changed
		return end
	}
	p.restore()
	if unreported := p.commit(ctx, p.refusal(end.err)); unreported != nil {
		p.log.V(1).Info("cannot write the status of a failed pass", "error", plain.Error(unreported))
	}
	return end
}

// commitFailed ends a pass whose result could not be written. The author's own failure stays
// the one that is returned, and its retries are as they would be; where none would follow, the pass
// is repeated until its result is written.
func (p *pass[T]) commitFailed(err error, next ending) ending {
	if next.err == nil || apierrors.IsConflict(err) {
		return p.writeFailed(err)
	}
	p.log.Error(err, "cannot write the result of a failed pass")
	if next.never {
		next.after = p.writeFailed(err).after
		next.never = next.after == 0
	}
	return next
}

// share spreads the n-th wait of the object.
func (p *pass[T]) share(n int) float64 { return spread.Share(p.key, n) }

// unhandled ends a pass that could not even read its object.
func (c *Controller[T]) unhandled(key types.NamespacedName, err error) error {
	c.memory.with(key, func(r *remembered) {
		r.delay, _ = r.ladder.failed(time.Now(), Retry{}, 0, func(n int) float64 { return spread.Share(key, n) })
	})
	return err
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/safelog"
	"github.com/trimtab-dev/trimtab/internal/spread"
	"github.com/trimtab-dev/trimtab/trace"
)

const (
	// staleWait is how long a pass is put off while the cache lags behind our own write.
	staleWait = 50 * time.Millisecond
	// staleLimit is how long the cache may lag before the object is read live.
	staleLimit = 5 * time.Second
	// commitTime is what writing the result may take, also after a deadline or shutdown.
	commitTime = 5 * time.Second
	// lowPriority lets everything else in the queue go first.
	lowPriority = -100
)

// passCounter numbers the passes of one controller.
type passCounter struct{ atomic.Uint64 }

// Reconcile is one pass over the object that req names. controller-runtime calls it; it
// is never called twice at a time for one object.
func (c *Controller[T]) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		if r := recover(); r != nil { // the author's code is guarded; this is a bug of ours, and retried like a failure
			err = &guard.Panic{Code: "trimtab", Method: "a pass", Value: r, Stack: debug.Stack()}
			c.log.Error(err, "a pass panicked; this is a bug in trimtab", "object", req.NamespacedName, "stack", guard.Stack(err))
			result, err = reconcile.Result{}, c.unhandled(req.NamespacedName, err)
		}
	}()
	c.memory.lead()
	// A pass under way when the process is told to stop finishes; its deadline bounds it.
	ctx = context.WithoutCancel(ctx)
	if result, err, done := c.undo(ctx, req.NamespacedName); !done {
		return result, err
	}
	return c.look(ctx, req)
}

// look visits the object that bears the name of req, if there is one.
func (c *Controller[T]) look(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj, found, err := c.fetch(ctx, req.NamespacedName)
	switch {
	case err != nil:
		return reconcile.Result{}, c.unhandled(req.NamespacedName, fmt.Errorf("read %s %s: %w", c.gvk.Kind, req, err))
	case !found:
		c.memory.drop(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if stale, lag := c.memory.stale(obj, c.finalizer); stale {
		if lag < staleLimit {
			staleSkips.WithLabelValues(c.name).Inc()
			return reconcile.Result{RequeueAfter: staleWait}, nil
		}
		if obj, found, err = c.fetchLive(ctx, req.NamespacedName); err != nil || !found {
			return reconcile.Result{RequeueAfter: staleWait}, client.IgnoreNotFound(err)
		}
	}
	return c.visit(ctx, obj)
}

func (c *Controller[T]) fetch(ctx context.Context, key types.NamespacedName) (T, bool, error) {
	obj := cached.New[T]()
	err := c.client.Get(ctx, key, obj)
	obj.SetManagedFields(nil) // half of an object, copied several times in each pass
	return obj, err == nil, client.IgnoreNotFound(err)
}

// fetchLive reads past a cache that has not shown our own write for too long.
func (c *Controller[T]) fetchLive(ctx context.Context, key types.NamespacedName) (T, bool, error) {
	liveReads.WithLabelValues(c.name).Inc()
	obj := cached.New[T]()
	err := c.live.Get(ctx, key, obj)
	return obj, err == nil, client.IgnoreNotFound(err)
}

// visit does the pass proper over a fresh object.
func (c *Controller[T]) visit(ctx context.Context, obj T) (reconcile.Result, error) {
	p := c.open(ctx, obj, nil)
	ctx = p.into(ctx)
	selected, err := p.selected(ctx)
	switch {
	case err != nil:
		return p.close(p.writeFailed(err))
	case !selected:
		return p.close(ending{outcome: notSelected, after: c.options.maxInterval(p.key), low: true})
	}
	var end ending
	switch {
	case obj.GetDeletionTimestamp().IsZero():
		end = p.reconcile(ctx)
	case c.finalizer == "" || !controllerutil.ContainsFinalizer(obj, c.finalizer):
		end = p.hold(ctx)
	default:
		end = p.cleanup(ctx)
	}
	return p.close(end)
}

// into returns the context of the pass's calls.
func (p *pass[T]) into(ctx context.Context) context.Context {
	return trace.Into(logf.IntoContext(ctx, p.run.log), p.trace)
}

// ending is what a pass came to, after its commit, as the queue must be told.
type ending struct {
	outcome string
	err     error // counted as a failure and retried after
	after   time.Duration
	low     bool
	never   bool // err is not retried without an event
}

// pass is one visit of one object.
type pass[T client.Object] struct {
	c    *Controller[T]
	run  *Run[T]
	key  types.NamespacedName
	base T // the object as the server has it, as far as this pass knows
	// vanished is set if the object is gone: there is nothing to write to.
	vanished *vanished
	trace    *trace.Pass
	state    string
	writes   int
	budget   int
	started  time.Time
	// least: the API server refused the whole status, and the least of it is written.
	least bool
}

const (
	// removed is the outcome of a pass after which nothing is left of the object.
	removed = "Removed"
	// notSelected is that of a pass over an object which is another's.
	notSelected = "NotSelected"
)

// open begins a pass over obj, or over the last version of one that vanished.
func (c *Controller[T]) open(ctx context.Context, obj T, v *vanished) *pass[T] {
	var info RetryInfo
	started := time.Now()
	c.memory.with(client.ObjectKeyFromObject(obj), func(r *remembered) {
		r.meet(obj.GetUID())
		info = r.ladder.start(started, c.policy(v))
		r.started = started
	})
	p := c.visitOf(ctx, obj, info)
	p.started, p.vanished, p.run.vanished = started, v, v != nil
	p.trace.Emit(trace.Start{
		Generation: obj.GetGeneration(), ResourceVersion: obj.GetResourceVersion(),
		Attempt: info.Attempt, Deleting: !obj.GetDeletionTimestamp().IsZero(), Vanished: v != nil,
	})
	return p
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

// visitOf makes the pass over obj.
func (c *Controller[T]) visitOf(ctx context.Context, obj T, info RetryInfo) *pass[T] {
	p := &pass[T]{c: c, key: client.ObjectKeyFromObject(obj), base: obj, started: time.Now(), budget: 2}
	if s, ok := reporting(obj); ok {
		p.state = s.State
	}
	p.trace = trace.NewPass(c.sink, c.name, trace.Object{
		Kind: c.gvk.Kind, Namespace: p.key.Namespace, Name: p.key.Name, UID: string(obj.GetUID()),
	}, c.passes.Add(1))
	log := safelog.Logger(logf.FromContext(ctx)).WithName("Controllers").WithName(c.name).WithValues(
		"resource.apiVersion", c.gvk.GroupVersion().String(), "resource.kind", c.gvk.Kind,
		"resource.name", p.key.Name, "resource.namespace", p.key.Namespace,
		"resource.resourceVersion", obj.GetResourceVersion(), "resource.generation", obj.GetGeneration(),
		"resource.uid", obj.GetUID())
	p.run = newRun(p, info, log)
	return p
}

// selected tells whether the object is this controller's to work on.
func (p *pass[T]) selected(ctx context.Context) (is bool, err error) {
	s, ok := p.c.author.(Selector[T])
	if !ok {
		return true, nil
	}
	p.run.Obj = p.base
	if err := guard.Aside(code, "Selects", func() { is = s.Selects(ctx, p.run) }); err != nil {
		p.run.log.Error(err, "Selects did not return", "stack", guard.Stack(err))
		return false, err
	}
	return is, nil
}

// reconcile sees to the finalizer, calls the author and commits.
func (p *pass[T]) reconcile(ctx context.Context) ending {
	err := p.ensureFinalizer(ctx)
	p.run.Obj, _ = p.base.DeepCopyObject().(T)
	if unprepared, ok := errors.AsType[prepareError](err); ok {
		return p.finish(ctx, Fail(unprepared.error).Because("PrepareFailed"), ErrorOutcome{})
	}
	if err != nil {
		return p.metadataFailed(ctx, err)
	}
	authorCtx, cancel := context.WithTimeout(ctx, p.c.options.deadline())
	outcome := p.guarded(authorCtx)
	cancel()
	if isOutdated(outcome.err) {
		return p.metadataFailed(ctx, outcome.err)
	}
	var handled ErrorOutcome
	if h, ok := p.c.author.(ErrorHandler[T]); ok && outcome.failed() {
		handled = p.handleError(ctx, h, outcome.err)
	}
	return p.finish(ctx, outcome, handled)
}

// finish commits an outcome and says when the object comes again.
func (p *pass[T]) finish(ctx context.Context, o Outcome, handled ErrorOutcome) ending {
	next := p.schedule(o, handled)
	if err := p.commit(ctx, verdictOf(o, next.never, p.run.retry)); err != nil {
		return p.commitFailed(err, next)
	}
	return next
}

// guarded calls the author; a panic is a failure like any other.
func (p *pass[T]) guarded(ctx context.Context) Outcome {
	var o Outcome
	if err := guard.Aside(code, "Reconcile", func() { o = p.c.author.Reconcile(ctx, p.run) }); err != nil {
		p.run.log.Error(err, "Reconcile did not return", "stack", guard.Stack(err))
		return Fail(err).Because(reasonPanicked)
	}
	o.err = readable(o.err)
	if o.failed() && errors.Is(o.err, context.DeadlineExceeded) && ctx.Err() != nil && o.reason == "" {
		o = o.Because("Timeout")
	}
	return o
}

// handleError lets the author see a failure; of what it changes only status is kept. Its
// own panic does not replace the error.
func (p *pass[T]) handleError(ctx context.Context, h ErrorHandler[T], cause error) ErrorOutcome {
	var e ErrorOutcome
	kept, _ := p.run.Obj.DeepCopyObject().(T)
	if err := guard.Aside(code, "OnError", func() { e = h.OnError(ctx, p.run, cause) }); err != nil {
		p.run.log.Error(err, "OnError did not return", "stack", guard.Stack(err))
		p.run.Obj = kept
		return ErrorOutcome{}
	}
	changed := p.run.Obj
	p.run.Obj = kept
	if e.withoutStatus {
		return e
	}
	if with, err := p.c.withStatusOf(changed, kept); err != nil {
		p.run.log.Error(err, "what OnError changed in status is lost")
	} else {
		p.run.Obj = with
	}
	return e
}

// schedule notes the outcome in the ladder and says when the object comes again.
func (p *pass[T]) schedule(o Outcome, handled ErrorOutcome) ending {
	policy := p.c.options.Retry
	next := ending{outcome: o.kind.String(), low: o.low, after: p.c.options.maxInterval(p.key)}
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
			next.after = r.ladder.again(policy)
		case kindWait:
			r.ladder.waiting()
		case kindTerminal:
			r.ladder.waiting()
			next.err, next.never = o.err, true
		case kindFail, kindFailAfter:
			next.err = o.err
			if handled.kind == errorNoRetry {
				policy.Attempts = -1
			}
			wait, retried := r.ladder.failed(time.Now(), policy, max(o.after, handled.after), p.share)
			if next.never = !retried; retried {
				next.after = wait
			}
		}
	})
	return next
}

// cleanup lets the author undo, and removes the finalizer once it has.
func (p *pass[T]) cleanup(ctx context.Context) ending {
	p.run.Obj, _ = p.base.DeepCopyObject().(T)
	cleaner, _ := p.c.author.(Cleaner[T])
	authorCtx, cancel := context.WithTimeout(ctx, p.c.options.deadline())
	o := p.guardedCleanup(authorCtx, cleaner)
	cancel()
	if isOutdated(o.err) {
		return p.metadataFailed(ctx, o.err)
	}
	if o.kind == cleanupRemoved {
		if err := p.removeFinalizer(ctx); err != nil {
			return p.metadataFailed(ctx, err)
		}
		return ending{outcome: removed}
	}
	next := p.scheduleCleanup(o)
	if p.vanished != nil {
		p.farewell(verdictOfCleanup(o))
		return next
	}
	if err := p.commit(ctx, verdictOfCleanup(o)); err != nil {
		return p.commitFailed(err, next)
	}
	return next
}

func (p *pass[T]) guardedCleanup(ctx context.Context, cleaner Cleaner[T]) CleanupOutcome {
	var o CleanupOutcome
	if err := guard.Aside(code, "Cleanup", func() { o = cleaner.Cleanup(ctx, p.run) }); err != nil {
		p.run.log.Error(err, "Cleanup did not return", "stack", guard.Stack(err))
		return CleanupFailed(err).Because(reasonPanicked)
	}
	o.err = readable(o.err)
	return o
}

func (p *pass[T]) scheduleCleanup(o CleanupOutcome) ending {
	next := ending{outcome: "Keep", after: p.c.options.maxInterval(p.key)}
	if p.vanished != nil && (next.after == 0 || next.after > unheardOf) {
		next.after = unheardOf
	}
	p.c.memory.with(p.key, func(r *remembered) {
		switch o.kind {
		case cleanupKeep:
			r.ladder.succeeded()
			next.after = o.after
		case cleanupFailed:
			next.outcome, next.err = "Fail", o.err
			wait, retried := r.ladder.failed(time.Now(), p.c.policy(p.vanished), 0, p.share)
			if next.never = !retried; retried {
				next.after = wait
			}
		case cleanupKeepUntilEvent, cleanupRemoved:
			r.ladder.waiting()
		}
	})
	return next
}

// outdated ends a pass over an object that moved on while we looked: again with the fresh
// one, and no attempt is used up. What is refused as if it had moved, again and again, is a
// failure like any other.
func (p *pass[T]) outdated(err error) ending {
	var n int
	p.c.memory.with(p.key, func(r *remembered) { n, r.conflicts = r.conflicts, r.conflicts+1 })
	if n >= mostConflicts {
		return p.unwrittenAgain(fmt.Errorf("work on the object, which is never as it was read: %w", err))
	}
	after := 10*time.Millisecond + time.Duration(p.share(0)*float64(40*time.Millisecond))
	return ending{outcome: outdatedPass, after: min(after<<min(n/4, 10), time.Second)}
}

// outdatedPass is the outcome of a pass that worked on an old copy.
const outdatedPass = "Conflict"

// mostConflicts is how many passes in a row may find that the object has moved on. That takes a
// cache that is seconds behind.
const mostConflicts = 24

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
	if end.err == nil || p.vanished != nil { // the object is gone, or moved on
		return end
	}
	p.run.Obj, _ = p.base.DeepCopyObject().(T)
	if untold := p.commit(ctx, p.refusal(end.err)); untold != nil {
		p.run.log.V(1).Info("cannot write the status of a failed pass", "error", plain.Error(untold))
	}
	return end
}

// commitFailed ends a pass whose result could not be written. The author's own failure stays
// the one that is told, and its retries are as they would be; where none would follow, the pass
// is repeated until its result is written.
func (p *pass[T]) commitFailed(err error, next ending) ending {
	if next.err == nil || apierrors.IsConflict(err) {
		return p.writeFailed(err)
	}
	p.run.log.Error(err, "cannot write the result of a failed pass")
	if next.never {
		next.after = p.writeFailed(err).after
		next.never = next.after == 0
	}
	return next
}

// close tells the queue and the trace how the pass ended.
func (p *pass[T]) close(end ending) (reconcile.Result, error) {
	p.c.memory.with(p.key, func(r *remembered) {
		r.started, r.delay = time.Time{}, end.after
		if end.err == nil && end.outcome != outdatedPass {
			r.unwritten, r.conflicts = 0, 0
		}
	})
	passes.WithLabelValues(p.c.name, end.outcome).Inc()
	if p.writes > p.budget {
		overBudget.WithLabelValues(p.c.name).Inc()
		p.run.log.Info("the pass wrote more often than its budget allows", "writes", p.writes, "budget", p.budget)
	}
	event := trace.End{Outcome: end.outcome, Again: end.after, Took: time.Since(p.started), Err: plain.Error(end.err)}
	p.run.log.V(1).Info("pass ended", "outcome", end.outcome, "state", p.state, "again", end.after, "took", event.Took)
	p.trace.Emit(event)
	if err := p.trace.Err(); err != nil {
		p.run.log.Error(err, "a sink of the trace failed; the pass did not")
	}
	switch {
	case end.err != nil && end.never && end.after == 0:
		return reconcile.Result{}, reconcile.TerminalError(safelog.Error(end.err))
	case end.err != nil: // controller-runtime logs it
		return reconcile.Result{}, safelog.Error(end.err)
	case end.low:
		return reconcile.Result{RequeueAfter: end.after, Priority: new(lowPriority)}, nil
	}
	return reconcile.Result{RequeueAfter: end.after}, nil
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

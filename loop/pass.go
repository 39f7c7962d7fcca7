package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/safelog"
	"github.com/trimtab-dev/trimtab/logs"
	"github.com/trimtab-dev/trimtab/trace"
)

const (
	// staleWait is how long a pass is put off, at least, while the cache lags behind what is known. After
	// that it is half of the time for which the cache has lagged, so that little is lost when it catches up.
	staleWait = 50 * time.Millisecond
	// staleLimit is how long the cache may lag before the object is read live, and the longest wait.
	staleLimit = 5 * time.Second
	// lowPriority lets everything else in the queue go first.
	lowPriority = -100
)

// passCounter numbers the passes of one controller.
type passCounter struct{ atomic.Uint64 }

// Reconcile is one pass over the object that req names. controller-runtime calls it; it
// is never called concurrently for the same object.
func (c *Controller[T]) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		if r := recover(); r != nil { // the author's code is guarded; this is a bug of ours, and retried like a failure
			err = &guard.PanicError{Code: "trimtab", Method: "a pass", Value: r, Stack: debug.Stack()}
			c.log.Error(err, "a pass panicked; this is a bug in trimtab", "object", req.NamespacedName, "stack", guard.Stack(err))
			result, err = reconcile.Result{}, c.unhandled(req.NamespacedName, err)
		}
	}()
	if c.leader != nil && !c.leader.Leads() {
		return reconcile.Result{RequeueAfter: time.Second}, nil // by then, the process has ended
	}
	c.memory.lead()
	if !c.terms.Watches(req.Namespace) { // a source woke it, and there is no such object for this operator
		return reconcile.Result{}, nil
	}
	if wait := c.limited(req.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	// A pass that is under way when the process begins to shut down finishes. Deadlines bound the calls of its author and its writes.
	ctx = finishing(ctx)
	if result, err, done := c.undo(ctx, req.NamespacedName); !done {
		return result, err
	}
	obj, found, err := c.read(ctx, req.NamespacedName)
	if err == nil && found {
		err = c.await(ctx, req.NamespacedName)
	}
	if stale, ok := errors.AsType[staleError](err); ok {
		return reconcile.Result{RequeueAfter: min(max(stale.lag/2, staleWait), staleLimit)}, nil
	}
	switch {
	case err != nil:
		return reconcile.Result{}, c.unhandled(req.NamespacedName, fmt.Errorf("read %s %s: %w", c.gvk.Kind, req, err))
	case !found:
		return c.reconcileAbsent(ctx, req.NamespacedName)
	}
	return c.reconcile(ctx, obj)
}

// reconcile does the pass over a fresh object.
func (c *Controller[T]) reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	p := c.open(ctx, obj, nil)
	ctx = p.into(ctx)
	selected, err := p.selected(ctx)
	switch {
	case err != nil:
		return p.close(p.writeFailed(err))
	case !selected:
		return p.close(ending{outcome: notSelected, after: c.options.maxInterval(p.key), low: true})
	}
	end, ok := p.dropUnneeded(ctx)
	if !ok {
		return p.close(end)
	}
	switch {
	case obj.GetDeletionTimestamp().IsZero():
		end = p.reconcile(ctx)
	case c.wraps():
		end = p.reconcileDeletion(ctx)
	case c.finalizer == "" || !controllerutil.ContainsFinalizer(obj, c.finalizer):
		end = p.hold(ctx)
	default:
		end = p.cleanup(ctx)
	}
	return p.close(end)
}

// pass is one pass over one object. What it writes is in the types that it is made of: object,
// and status, which exists while the status is written.
type pass[T client.Object] struct {
	object[T]

	run    Run[T]
	info   RetryInfo
	client *consistent
	// vanished is set if the object is gone: there is nothing to write to.
	vanished *vanished
	started  time.Time
	start    trace.Start
	// endSpan closes the span of the pass; nil if there is none.
	endSpan func(trace.End)

	// What the author said of the object, by methods of Run.
	conditions conditions.Set
	reported   *conditions.Report
	stateSet   bool
	// state is the state as the trace has it.
	state string
	// called: the author's code was called. silent: it wants nothing said of the failure in the status.
	called, silent bool
	// next is after how long the author asked for the next pass, zero if not.
	next time.Duration
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
		c.begun(r, obj, started)
		info = r.ladder.start(started, c.policy(v))
		r.started, r.window = started, r.window.began(started, c.options.RateLimit)
	})
	p := c.passOver(obj, info, logf.FromContext(ctx))
	p.vanished = v
	p.begin()
	return p
}

// passOver makes the pass over obj, of which the author gets a copy.
func (c *Controller[T]) passOver(obj T, info RetryInfo, log logr.Logger) *pass[T] {
	p := &pass[T]{object: object[T]{c: c, key: client.ObjectKeyFromObject(obj), base: obj, budget: 2}, info: info, started: time.Now()}
	p.run.pass = p
	p.client = c.consistent(p.key)
	p.restore()
	if s, ok := reporting(obj); ok {
		p.state = s.State
	}
	p.trace = trace.NewPass(c.sink, c.name, trace.Object{
		Kind: c.gvk.Kind, Namespace: p.key.Namespace, Name: p.key.Name, UID: string(obj.GetUID()),
	}, c.passes.Add(1))
	p.log = logTo(log, func(log logr.Logger) logr.Logger {
		return safelog.Lazy(log, func(l logr.Logger) logr.Logger { return c.logger(l, obj) })
	})
	return p
}

// begin notes the start in the trace.
func (p *pass[T]) begin() {
	p.start = trace.Start{
		Generation: p.base.GetGeneration(), ResourceVersion: p.base.GetResourceVersion(),
		Attempt: p.info.Attempt, Deleting: !p.base.GetDeletionTimestamp().IsZero(), Vanished: p.vanished != nil,
	}
	p.trace.Emit(p.start)
}

// logger adds the identity of obj, as it was read, to a logger.
func (c *Controller[T]) logger(l logr.Logger, obj T) logr.Logger {
	return logs.About(l.WithName(logs.Name(c.name)), c.gvk, obj)
}

// into returns the context of the pass's calls, with a span if there are any.
func (p *pass[T]) into(ctx context.Context) context.Context {
	ctx = trace.Into(logf.IntoContext(ctx, p.log), p.trace)
	if p.client != nil && p.c.wraps() {
		ctx = context.WithValue(ctx, clientKey{}, p.client)
	}
	if p.c.spans == nil {
		return ctx
	}
	const open = "Open of the spans"
	inSpan, err := guard.Call(code, open, func() (context.Context, error) {
		o := trace.Object{APIVersion: p.c.gvk.GroupVersion().String(), Kind: p.c.gvk.Kind, Namespace: p.key.Namespace, Name: p.key.Name, UID: string(p.base.GetUID())}
		inside, end := p.c.spans.Open(ctx, p.c.name, o, p.start)
		p.endSpan = end
		return inside, nil
	})
	if p.returned(open, err) != nil {
		return ctx
	}
	return inSpan
}

// restore gives the author a fresh copy of the object as the server has it.
func (p *pass[T]) restore() { p.run.Obj, p.seen = p.copy(), nil }

// forget drops what the author said of the object.
func (p *pass[T]) forget() {
	p.conditions, p.reported, p.stateSet = conditions.Set{}, nil, false
}

// reconcile puts the finalizer on, calls the author and commits.
func (p *pass[T]) reconcile(ctx context.Context) ending {
	if err := p.ensureFinalizer(ctx); err != nil {
		p.restore()
		if unprepared, ok := errors.AsType[prepareError](err); ok {
			return p.finish(ctx, Fail(unprepared.error).Because("PrepareFailed"), ErrorOutcome{})
		}
		return p.metadataFailed(ctx, err)
	}
	outcome := p.callReconcile(ctx)
	if isOutdated(outcome.err) {
		return p.metadataFailed(ctx, outcome.err)
	}
	if err := p.narrow(outcome.writes); err != nil {
		outcome = Fail(err)
	}
	var handled ErrorOutcome
	if h, ok := as[ErrorHandler[T]](p.c.author); ok && outcome.failed() {
		handled = p.callOnError(ctx, h, outcome.err)
		p.silent = handled.withoutStatus
	}
	return p.finish(ctx, outcome, handled)
}

// finish commits an outcome and says when the object comes again.
func (p *pass[T]) finish(ctx context.Context, o Outcome, handled ErrorOutcome) ending {
	next := p.schedule(o, handled)
	p.next = o.after
	if o.writes == WriteMetadata && o.kind == kindDone && len(metadataChanges(p.base, p.run.Obj)) > 0 {
		return p.finishLater(ctx, next)
	}
	if err := p.commit(ctx, verdictOf(o, next.never, p.info)); err != nil {
		return p.commitFailed(err, next)
	}
	return next
}

// finishLater writes the metadata alone. The status is left to the next pass, which follows at once.
func (p *pass[T]) finishLater(ctx context.Context, next ending) ending {
	if err := p.patchMetadata(ctx, p.run.Obj); err != nil {
		return p.metadataFailed(ctx, err)
	}
	next.after, next.low = soon, false
	return next
}

// soon is the delay of a pass that is due at once. Zero would mean none.
const soon = time.Millisecond

// cleanup lets the author clean up, and removes the finalizer once that is done.
func (p *pass[T]) cleanup(ctx context.Context) ending {
	o := p.callCleanup(ctx)
	if isOutdated(o.err) {
		return p.metadataFailed(ctx, o.err)
	}
	if o.kind == cleanupDone {
		if err := p.releaseObject(ctx); err != nil {
			return p.metadataFailed(ctx, err)
		}
		return ending{outcome: removed}
	}
	next := p.scheduleCleanup(o)
	if p.vanished != nil {
		p.reportVanished(verdictOfCleanup(o))
		return next
	}
	if err := p.commit(ctx, verdictOfCleanup(o)); err != nil {
		return p.commitFailed(err, next)
	}
	return next
}

// hold reports on an object that waits for others' finalizers; there is nothing to do.
func (p *pass[T]) hold(ctx context.Context) ending {
	others := finalizersOfOthers(p.base, p.c.finalizer)
	if s, ok := reporting(p.base); ok && len(others) > 0 {
		p.conditions.Keep(s.Conditions, api.ConditionReady, api.ConditionReconciling, api.ConditionStalled)
		v := verdictOfHeld(others)
		p.conditions.True(api.ConditionDeleting, v.reason, v.message)
		if err := p.commit(ctx, v); err != nil {
			return p.writeFailed(err)
		}
	}
	return ending{outcome: "Done"}
}

// ended tells the sources that a pass has ended.
func (c *Controller[T]) ended(key types.NamespacedName) {
	for _, tell := range c.onEnd {
		tell(key)
	}
}

// close notes the end in memory, metrics, log and trace, and returns it as the queue takes it.
func (p *pass[T]) close(end ending) (reconcile.Result, error) {
	p.c.memory.with(p.key, func(r *remembered) {
		end = p.contest(r, end)
		r.started, r.delay = time.Time{}, end.after
		r.ledger.release()
		if end.err == nil && end.outcome != outdatedPass {
			r.unwritten, r.conflicts = 0, 0
		}
	})
	p.measure(end)
	if p.called && p.vanished == nil {
		p.c.ended(p.key)
	}
	event := trace.End{Outcome: end.outcome, Again: end.after, Took: time.Since(p.started), Err: plain.Error(end.err)}
	if log := p.log.V(1); log.Enabled() {
		log.Info("pass ended", "outcome", end.outcome, "state", p.state, "again", end.after, "took", event.Took)
	}
	p.trace.Emit(event)
	if p.endSpan != nil {
		_ = p.call("the end of a span", func() { p.endSpan(event) }) // logged
	}
	if err := p.trace.Err(); err != nil {
		p.log.Error(err, "a sink of the trace failed; the pass did not")
	}
	return end.result()
}

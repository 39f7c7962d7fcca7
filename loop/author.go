package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// The author's code is called here, and by sources and indexes in the cache, always through package
// guard: whatever ends it takes neither a worker nor the process along.

// code is whose code the loop calls, as errors say it.
const code = "the controller"

// reasonPanicked is that of a failure which is a panic or an exit.
const reasonPanicked = "Panicked"

// call calls a method of the author and logs if it did not return.
func (p *pass[T]) call(method string, f func()) error {
	return p.returned(method, guard.Aside(code, method, f))
}

// returned logs if a method of the author did not return.
func (p *pass[T]) returned(method string, err error) error {
	if err != nil {
		p.log.Error(err, method+" did not return", "stack", guard.Stack(err))
	}
	return err
}

// selected reports whether the object is this controller's to work on.
func (p *pass[T]) selected(ctx context.Context) (is bool, err error) {
	s, ok := as[Selector[T]](p.c.author)
	if !ok {
		return true, nil
	}
	err = p.returned("Selects", guard.Run(s, code, "Selects", func() { is = s.Selects(ctx, &p.run) }))
	return is && err == nil, err
}

// prepare lets the author prepare the object for the write that adds the finalizer.
func (p *pass[T]) prepare(ctx context.Context) error {
	preparer, ok := as[Preparer[T]](p.c.author)
	if !ok {
		return nil
	}
	var err error
	if crash := p.call("Prepare", func() { err = preparer.Prepare(ctx, &p.run) }); crash != nil {
		return prepareError{crash}
	}
	if err = readable(err); err != nil {
		return prepareError{err}
	}
	return nil
}

// prepareError is the author's failure to prepare, as against one of our write.
type prepareError struct{ error }

func (e prepareError) Unwrap() error { return e.error }

// callReconcile calls Reconcile under the deadline; a panic is a failure like any other.
func (p *pass[T]) callReconcile(ctx context.Context) Outcome {
	p.called = true
	ctx, cancel := context.WithTimeout(ctx, p.c.options.deadline())
	defer cancel()
	var o Outcome
	if err := p.call("Reconcile", func() { o = p.c.author.Reconcile(ctx, &p.run) }); err != nil {
		return Fail(err).Because(reasonPanicked)
	}
	o.err = readable(o.err)
	if o.failed() && errors.Is(o.err, context.DeadlineExceeded) && ctx.Err() != nil && o.reason == "" {
		o = o.Because("Timeout")
	}
	return o
}

// callCleanup calls Cleanup under the deadline.
func (p *pass[T]) callCleanup(ctx context.Context) CleanupOutcome {
	p.called = true
	ctx, cancel := context.WithTimeout(ctx, p.c.options.deadline())
	defer cancel()
	cleaner, _ := p.c.author.(Cleaner[T])
	var o CleanupOutcome
	if err := p.call("Cleanup", func() { o = cleaner.Cleanup(ctx, &p.run) }); err != nil {
		return CleanupFailed(err).Because(reasonPanicked)
	}
	o.err = readable(o.err)
	return o
}

// callRelease calls Release under the deadline.
func (p *pass[T]) callRelease(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.c.options.deadline())
	defer cancel()
	w, ok := p.c.author.(Decorator[T])
	if !ok {
		return true, nil
	}
	if panicked := p.call("Release", func() { done, err = w.Release(ctx, &p.run) }); panicked != nil {
		return false, panicked
	}
	return done, readable(err)
}

// callOnError shows the author a failure; of what it changes only status is kept. Its own panic
// does not replace the error.
func (p *pass[T]) callOnError(ctx context.Context, h ErrorHandler[T], cause error) ErrorOutcome {
	var e ErrorOutcome
	kept, _ := p.run.Obj.DeepCopyObject().(T)
	if err := p.call("OnError", func() { e = h.OnError(ctx, &p.run, cause) }); err != nil {
		p.run.Obj = kept
		return ErrorOutcome{}
	}
	changed := p.run.Obj
	p.run.Obj = kept
	if e.withoutStatus {
		return e
	}
	with, err := p.c.fields.withStatusOf(changed, kept)
	if err != nil {
		p.log.Error(err, "what OnError changed in status is lost")
		return e
	}
	p.run.Obj, _ = with.(T)
	return e
}

// readable replaces an error that cannot return its text: a nil pointer in an error interface
// panics when it is asked.
func readable(err error) (out error) {
	if err == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			out = fmt.Errorf("the controller failed with a %T whose Error method panicked: %v; this is a bug in it", err, r)
		}
	}()
	_ = err.Error()
	return err
}

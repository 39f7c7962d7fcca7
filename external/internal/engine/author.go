package engine

import (
	"context"
	"errors"
	"time"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// The author's code is called through this file and nowhere else: [guarded] for a call that
// runs where it is made, [await] for one that may take its time. Whatever the author's code
// does, it comes back as a value: a panic and the end of its goroutine are errors, and a call
// that does not return is left behind.

const (
	// pureDeadline bounds the author's methods that call nobody: names, dependencies, what
	// status shows.
	pureDeadline = 5 * time.Second
	// overtime is how long after its deadline a call may still come back by itself.
	overtime = 2 * time.Second
)

// unreturned is a call of the author's code that does not return.
type unreturned struct{ text string }

func (u *unreturned) Error() string { return u.text }

// errEnded is what a call comes to whose goroutine ended without a return.
var errEnded = errors.New("the driver ended its goroutine (runtime.Goexit) instead of returning")

// unasked tells an error of the author's code itself, which may be gone the next time, from one
// that the author returned.
func unasked(err error) bool {
	if errors.Is(err, errEnded) {
		return true
	}
	_, is := errors.AsType[*guard.PanicError](err)
	return is
}

// isUnreturned tells the error of a call that does not return, which says nothing of the spec.
func isUnreturned(err error) bool {
	_, is := errors.AsType[*unreturned](err)
	return is
}

// guarded calls a method of the driver; a panic is an error.
func guarded[R any](method string, f func() (R, error)) (R, error) {
	return guard.Call("the driver", method, f)
}

// begin calls f in a goroutine of its own. What f returns can be received once, or ended if f ends
// its goroutine. f must not panic.
func begin[R any](ended R, f func() R) <-chan R {
	answers := make(chan R, 1)
	go func() {
		answer := ended
		defer func() { answers <- answer }()
		answer = f()
	}()
	return answers
}

// await calls f in a goroutine of its own and waits for it to return until overtime after
// ctx ended. Then f is left behind: the answer is what ended, and late brings what f returns
// one day. ended is also the answer if f ends its goroutine. f must not panic, and must not
// touch what the caller goes on to use.
func await[R any](ctx context.Context, ended R, f func(context.Context) R) (answer R, late <-chan R) {
	answers := begin(ended, func() R { return f(ctx) })
	select {
	case answer = <-answers:
		return answer, nil
	case <-ctx.Done():
	}
	more := time.NewTimer(overtime)
	defer more.Stop()
	select {
	case answer = <-answers:
		return answer, nil
	case <-more.C:
		return ended, answers
	}
}

// result is what a method of the author's came to.
type result[R any] struct {
	value R
	err   error
}

// pure calls a method of the author's that calls nobody, and therefore returns at once. One
// that does not is left behind, and its object with it.
func pure[R any](l *leftBehind, who subject, method string, f func() (R, error)) (R, error) {
	var none R
	if err := l.stuck(who.uid); err != nil {
		return none, err
	}
	answers := begin(result[R]{err: errEnded}, func() result[R] {
		value, err := guarded(method, f)
		return result[R]{value, err}
	})
	over := time.NewTimer(pureDeadline + overtime)
	defer over.Stop()
	select {
	case answer := <-answers:
		return answer.value, answer.err
	case <-over.C:
	}
	left := &abroad{method: method}
	l.leave(who, left, func() lateAnswer { <-answers; return lateAnswer{} })
	return none, left.err()
}

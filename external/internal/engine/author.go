package engine

import (
	"context"
	"errors"
	"time"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// The driver's code is called through this file and nowhere else: [guarded] for a call that runs
// in place, [await] for one that may take long. Whatever the driver does, the caller gets a value:
// a panic and the end of its goroutine are errors, and a call that does not return is abandoned.

const (
	// pureDeadline bounds the driver's methods that call no API: names, dependencies, what status
	// shows.
	pureDeadline = 5 * time.Second
	// overtime is how long after its deadline a call may still return by itself.
	overtime = 2 * time.Second
)

// unreturned is the error of a driver's call that does not return.
type unreturned struct{ text string }

func (u *unreturned) Error() string { return u.text }

// errEnded is the error of a call whose goroutine ended without returning.
var errEnded = errors.New("the driver ended its goroutine (runtime.Goexit) instead of returning")

// unasked reports whether err comes from a crash of the driver, which may not happen the next
// time, rather than from a return value of the driver.
func unasked(err error) bool {
	if errors.Is(err, errEnded) {
		return true
	}
	_, is := errors.AsType[*guard.PanicError](err)
	return is
}

// isUnreturned reports whether err is that of a call that does not return, which says nothing
// about the spec.
func isUnreturned(err error) bool {
	_, is := errors.AsType[*unreturned](err)
	return is
}

// guarded calls a method of the driver and turns a panic into an error.
func guarded[R any](method string, f func() (R, error)) (R, error) {
	return guard.Call("the driver", method, f)
}

// begin calls f in its own goroutine. The channel delivers once what f returns, or what ended returns
// if f ends its goroutine. Neither may panic.
func begin[R any](ended, f func() R) <-chan R {
	answers := make(chan R, 1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				answers <- ended()
			}
		}()
		answer := f()
		returned = true
		answers <- answer
	}()
	return answers
}

// await calls f in its own goroutine and waits for it to return until overtime after ctx ended.
// Then f is abandoned: the answer is the zero value, and late delivers what f returns in the end. The
// answer is that of ended if f ends its goroutine. Neither may panic, and f must not touch what the
// caller continues to use.
func await[R any](ctx context.Context, ended, f func() R) (answer R, late <-chan R) {
	answers := begin(ended, f)
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
		return answer, answers
	}
}

// result is the outcome of a driver's method.
type result[R any] struct {
	value R
	err   error
}

// pure calls a driver's method that calls no API and therefore should return at once. If it does
// not, the call is abandoned, and nothing more is called for its object.
func pure[R any](l *abandonedCalls, who subject, method string, f func() (R, error)) (R, error) {
	var none R
	if err := l.stuck(who.uid); err != nil {
		return none, err
	}
	answers := begin(func() result[R] { return result[R]{err: errEnded} }, func() result[R] {
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
	left := &abandonedCall{method: method}
	l.add(who, left, func() lateAnswer { <-answers; return lateAnswer{} })
	return none, left.err()
}

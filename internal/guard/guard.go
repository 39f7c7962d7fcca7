// Package guard calls code that authors of operators wrote. However that code ends, by a panic or by
// runtime.Goexit, its caller goes on and gets an error.
package guard

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError is the error of code that panicked.
type PanicError struct {
	// Code is whose code it is, for example "the driver", and Method what was called.
	Code, Method string
	// Value is what it panicked with, Stack where.
	Value any
	Stack []byte
}

// Error names the method and where to find the stack.
func (p *PanicError) Error() string {
	return fmt.Sprintf("%s panicked in %s: %v; the operator's log has the stack", p.Code, p.Method, p.Value)
}

// ExitError is the error of code that ended the goroutine on which it was called.
type ExitError struct{ Code, Method string }

// Error names the method and says what to do instead.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s called runtime.Goexit in %s, which ends the goroutine; return instead", e.Code, e.Method)
}

// Call calls f and returns a [PanicError] for a panic. It is for code whose goroutine may end.
func Call[R any](code, method string, f func() (R, error)) (result R, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Code: code, Method: method, Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Aside calls f on a goroutine of its own and waits for its end, so that runtime.Goexit does not end
// the caller's. It returns a [PanicError], an [ExitError], or nil.
func Aside(code, method string, f func()) error {
	ended := make(chan error, 1)
	go func() {
		_ = grow(len(method))
		var err error = &ExitError{Code: code, Method: method}
		defer func() { ended <- err }()
		_, err = Call(code, method, func() (struct{}, error) { f(); return struct{}{}, nil })
	}()
	return <-ended
}

// Returner is code that always returns from some of its methods: in these it calls authors' code only on
// other goroutines, and never runtime.Goexit.
type Returner interface{ AlwaysReturns() }

// Run is [Aside] for a method f of by from which a [Returner] always returns. If by is one, f runs on the caller's goroutine,
// which saves a switch and the growth of another stack; a panic is still an error.
func Run(by any, code, method string, f func()) error {
	if _, returns := by.(Returner); !returns {
		return Aside(code, method, f)
	}
	_, err := Call(code, method, func() (struct{}, error) { f(); return struct{}{}, nil })
	return err
}

// grow makes room on the stack of a new goroutine at once. Otherwise the stack is copied each time it
// doubles, with everything that f has called by then.
//
//go:noinline
func grow(n int) byte {
	var room [8 << 10]byte
	return room[n]
}

// Stack returns where the code panicked whose error err is or wraps; empty if it did not panic.
func Stack(err error) string {
	if p, ok := errors.AsType[*PanicError](err); ok {
		return string(p.Stack)
	}
	return ""
}

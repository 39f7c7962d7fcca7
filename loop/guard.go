package loop

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// panicked is the error of an author's code that did not return.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string {
	return fmt.Sprintf("the controller panicked: %v; its log has the stack", p.value)
}

// errExited is the error of an author's code that ended its goroutine.
var errExited = errors.New("the controller called runtime.Goexit, which ends the goroutine it is called on; return instead")

// guard calls f. All calls of the author's code are made here: on a goroutine of its own, so
// that what ends that, a panic or runtime.Goexit, takes neither a worker nor the process along.
func guard(f func()) error {
	ended := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if r := recover(); r != nil {
				err = &panicked{value: r, stack: debug.Stack()}
			}
			ended <- err
		}()
		f()
		err = nil
	}()
	return <-ended
}

// stackOf is where a guarded call panicked; empty if it did not.
func stackOf(err error) string {
	if p, ok := errors.AsType[*panicked](err); ok {
		return string(p.stack)
	}
	return ""
}

// readable replaces an error that cannot tell its text: a nil pointer in an error interface
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

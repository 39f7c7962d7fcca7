package loop

import "fmt"

// code is whose code the loop calls, as errors say it. All of that code is called through package
// guard: whatever ends it takes neither a worker nor the process along.
const code = "the controller"

// reasonPanicked is that of a failure which is a panic or an exit.
const reasonPanicked = "Panicked"

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

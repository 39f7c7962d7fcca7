package loop

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Outcome is what a pass came to. It is one opaque value, so that a result and an error
// cannot contradict each other. The zero value is [Done].
type Outcome struct {
	kind   outcomeKind
	after  time.Duration
	reason string
	err    error
	deps   []Dep
	low    bool
}

type outcomeKind int

const (
	kindDone outcomeKind = iota
	kindAgain
	kindAfter
	kindWait
	kindFail
	kindFailAfter
	kindTerminal
)

// Dep names an object that a pass waits for.
type Dep struct {
	// Kind is the kind in people's words, for example "Stream".
	Kind      string
	Namespace string
	Name      string
	// Why says what is missing, for example "does not exist" or "is not ready".
	Why string
}

// Done: finished. The object is visited again on an event, or after the max interval.
func Done() Outcome { return Outcome{} }

// Again: once more soon, with a delay that grows while Again is repeated.
func Again() Outcome { return Outcome{kind: kindAgain} }

// AgainAfter: work is under way, and to be looked at again after d. It is neither a success
// nor a failure. Zero or less means [Again].
func AgainAfter(d time.Duration) Outcome { return Outcome{kind: kindAgain, after: max(d, 0)} }

// After: succeeded, and to be visited again after d at the latest. An earlier event
// replaces the appointment. Zero or less means [Done].
func After(d time.Duration) Outcome {
	if d <= 0 {
		return Done()
	}
	return Outcome{kind: kindAfter, after: d}
}

// WaitFor: nothing can be done until deps change. It is not a failure and uses up no
// attempt; events of the deps, if they are watched, resume the object at once. reason is
// CamelCase and becomes the reason of Ready=False.
func WaitFor(reason string, deps ...Dep) Outcome {
	return Outcome{kind: kindWait, reason: reason, deps: deps}
}

// Fail: retried by the controller's [Retry] policy. A nil err is a programmer's mistake
// and fails as such. The text of err reaches the object's status, so it must not hold
// secrets or values that differ from pass to pass.
func Fail(err error) Outcome { return Outcome{kind: kindFail, err: orUnnamed(err)} }

// FailAfter: as [Fail], with a delay of its own (the RetriableError of component-operator-runtime).
func FailAfter(err error, d time.Duration) Outcome {
	return Outcome{kind: kindFailAfter, err: orUnnamed(err), after: d}
}

// Terminal: no retry until an event. The object becomes Stalled with reason.
func Terminal(reason string, err error) Outcome {
	return Outcome{kind: kindTerminal, reason: reason, err: orUnnamed(err)}
}

// Because gives a failing outcome the CamelCase reason under which Ready=False shows it.
// Without it the reason is "ReconcileFailed".
func (o Outcome) Because(reason string) Outcome { o.reason = reason; return o }

// LowPriority lets everything else in the queue go before the visit that o schedules: for
// polls that nobody waits for.
func (o Outcome) LowPriority() Outcome { o.low = true; return o }

// Err returns the error of an outcome that failed, nil of any other.
func (o Outcome) Err() error { return o.err }

// String returns the outcome as an author makes it, with the text of its error, for tests and logs:
// "After(5m0s)", "Fail(no route to host).Because(Unreachable)".
func (o Outcome) String() string {
	text := ""
	switch o.kind {
	case kindDone:
		text = "Done()"
	case kindAgain:
		if text = "Again()"; o.after > 0 {
			text = fmt.Sprintf("AgainAfter(%s)", o.after)
		}
	case kindAfter:
		text = fmt.Sprintf("After(%s)", o.after)
	case kindWait:
		parts := []string{o.reason}
		for _, d := range o.deps {
			parts = append(parts, d.String())
		}
		text = "WaitFor(" + strings.Join(parts, ", ") + ")"
	case kindFail:
		text = fmt.Sprintf("Fail(%v)", o.err)
	case kindFailAfter:
		text = fmt.Sprintf("FailAfter(%v, %s)", o.err, o.after)
	case kindTerminal:
		text = fmt.Sprintf("Terminal(%s, %v)", o.reason, o.err)
	}
	if o.reason != "" && o.kind != kindWait && o.kind != kindTerminal {
		text += ".Because(" + o.reason + ")"
	}
	if o.low {
		text += ".LowPriority()"
	}
	return text
}

// CleanupOutcome is what a [Cleaner] came to. The zero value is [KeepUntilEvent], so that
// forgetting to decide never removes a finalizer.
type CleanupOutcome struct {
	kind   cleanupKind
	after  time.Duration
	reason string
	err    error
}

type cleanupKind int

const (
	cleanupKeepUntilEvent cleanupKind = iota
	cleanupKeep
	cleanupRemoved
	cleanupFailed
)

// Removed: nothing is left to undo; the finalizer goes. It cannot carry a schedule.
func Removed() CleanupOutcome { return CleanupOutcome{kind: cleanupRemoved} }

// Keep: the finalizer stays; look again after d. Zero or less means one second.
func Keep(d time.Duration) CleanupOutcome {
	if d <= 0 {
		d = time.Second
	}
	return CleanupOutcome{kind: cleanupKeep, after: d}
}

// KeepUntilEvent: the finalizer stays until an event says more.
func KeepUntilEvent() CleanupOutcome { return CleanupOutcome{} }

// CleanupFailed: the finalizer stays; retried by the controller's [Retry] policy.
func CleanupFailed(err error) CleanupOutcome {
	return CleanupOutcome{kind: cleanupFailed, err: orUnnamed(err)}
}

// Because gives the outcome the CamelCase reason under which status shows it.
func (o CleanupOutcome) Because(reason string) CleanupOutcome { o.reason = reason; return o }

// Err returns the error of an outcome that failed, nil of any other.
func (o CleanupOutcome) Err() error { return o.err }

// String returns the outcome as an author makes it, with the text of its error.
func (o CleanupOutcome) String() string {
	text := ""
	switch o.kind {
	case cleanupKeepUntilEvent:
		text = "KeepUntilEvent()"
	case cleanupKeep:
		text = fmt.Sprintf("Keep(%s)", o.after)
	case cleanupRemoved:
		text = "Removed()"
	case cleanupFailed:
		text = fmt.Sprintf("CleanupFailed(%v)", o.err)
	}
	if o.reason != "" {
		text += ".Because(" + o.reason + ")"
	}
	return text
}

// ErrorOutcome is what an [ErrorHandler] wants after a failure. The zero value is [RetryError].
type ErrorOutcome struct {
	kind          errorKind
	after         time.Duration
	withoutStatus bool
}

type errorKind int

const (
	errorRetry errorKind = iota
	errorNoRetry
	errorRetryIn
)

// RetryError goes on with the controller's [Retry] policy.
func RetryError() ErrorOutcome { return ErrorOutcome{} }

// NoRetry waits for the next event.
func NoRetry() ErrorOutcome { return ErrorOutcome{kind: errorNoRetry} }

// RetryIn retries after d instead of the policy's delay.
func RetryIn(d time.Duration) ErrorOutcome { return ErrorOutcome{kind: errorRetryIn, after: d} }

// WithoutStatus drops what the handler changed in status.
func (o ErrorOutcome) WithoutStatus() ErrorOutcome { o.withoutStatus = true; return o }

// String returns the outcome as an author makes it.
func (o ErrorOutcome) String() string {
	text := ""
	switch o.kind {
	case errorRetry:
		text = "RetryError()"
	case errorNoRetry:
		text = "NoRetry()"
	case errorRetryIn:
		text = fmt.Sprintf("RetryIn(%s)", o.after)
	}
	if o.withoutStatus {
		text += ".WithoutStatus()"
	}
	return text
}

var errUnnamed = errors.New("the controller reported a failure without an error; this is a bug in it")

func orUnnamed(err error) error {
	if err == nil {
		return errUnnamed
	}
	return err
}

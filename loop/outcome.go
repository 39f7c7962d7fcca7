package loop

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Outcome is what Reconcile returns. It is one opaque value, so that a result and an error cannot
// contradict each other. The zero value is [Done].
type Outcome struct {
	kind   outcomeKind
	after  time.Duration
	reason string
	err    error
	deps   []Dep
	low    bool
	writes WriteMode
}

// WriteMode says which changes to r.Obj the loop writes at the end of a pass. What is reported is written in
// any case if it changed, except with [ErrorOutcome.WithoutStatus]: conditions, state and message, the generations, and
// what OnError changed in the status.
type WriteMode int

const (
	// WriteChanges means what the author changed: first metadata, then the status, each in a request of its own.
	WriteChanges WriteMode = iota
	// WriteNothing means that all changes are dropped.
	WriteNothing
	// WriteStatus means that changes outside the status are dropped, those of the spec included.
	WriteStatus
	// WriteMetadata means that changes outside the metadata are dropped. [Done] then leaves the status, also what is
	// reported, to another pass, which follows at once, if labels, annotations or owner references changed.
	WriteMetadata
)

// String returns the name of the constant.
func (m WriteMode) String() string {
	if m < 0 || int(m) >= len(writeModes) {
		return fmt.Sprintf("WriteMode(%d)", int(m))
	}
	return writeModes[m]
}

var writeModes = [...]string{"WriteChanges", "WriteNothing", "WriteStatus", "WriteMetadata"}

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
	// Kind is the kind as messages show it, for example "Stream".
	Kind      string
	Namespace string
	Name      string
	// Why says what the dependency lacks, for example "does not exist" or "is not ready".
	Why string
}

// Done means that the pass succeeded. The next event or the end of [Options.MaxInterval] causes the next
// pass.
func Done() Outcome { return Outcome{} }

// Again means that another pass is needed soon. Its delay grows as long as passes return Again. The pass
// is neither a success nor a failure.
func Again() Outcome { return Outcome{kind: kindAgain} }

// AgainAfter means that work is in progress and that another pass is needed after d. The pass is neither
// a success nor a failure. Zero or less means [Again].
func AgainAfter(d time.Duration) Outcome { return Outcome{kind: kindAgain, after: max(d, 0)} }

// After means that the pass succeeded and that the next one is due after d, or earlier if there is an
// event. Zero or less means [Done].
func After(d time.Duration) Outcome {
	if d <= 0 {
		return Done()
	}
	return Outcome{kind: kindAfter, after: d}
}

// WaitFor means that nothing can be done before deps change. It is not a failure and does not count as a
// retry. If deps are watched, their next event causes a pass. reason is a CamelCase word and becomes the
// reason of Ready=False.
func WaitFor(reason string, deps ...Dep) Outcome {
	return Outcome{kind: kindWait, reason: reason, deps: deps}
}

// Fail means that the pass failed. It is retried according to the controller's [Retry] policy. A nil err
// is a programming error, which is reported. The text of err is shown in the object's status, so it must
// not contain secrets or values that differ from pass to pass.
func Fail(err error) Outcome { return Outcome{kind: kindFail, err: orUnnamed(err)} }

// FailAfter is like [Fail], but the pass is retried after d.
func FailAfter(err error, d time.Duration) Outcome {
	return Outcome{kind: kindFailAfter, err: orUnnamed(err), after: d}
}

// Terminal means that the pass failed and is not retried before the next event. The object becomes
// Stalled with reason.
func Terminal(reason string, err error) Outcome {
	return Outcome{kind: kindTerminal, reason: reason, err: orUnnamed(err)}
}

// Because returns the outcome with a CamelCase reason, which becomes that of Ready=False if the outcome
// is a failure. Without it, the reason is "ReconcileFailed".
func (o Outcome) Because(reason string) Outcome { o.reason = reason; return o }

// LowPriority returns the outcome with a next pass that comes after everything else in the queue. It is
// for polls that nobody waits for.
func (o Outcome) LowPriority() Outcome { o.low = true; return o }

// Writing returns the outcome with a choice of what is written. Without it, everything that the author
// changed is written. The Java Operator SDK has the same choice in its UpdateControl.
func (o Outcome) Writing(m WriteMode) Outcome { o.writes = m; return o }

// Err returns the error of a failed outcome, and nil for any other.
func (o Outcome) Err() error { return o.err }

// Retried reports whether the outcome is a failure that is retried.
func (o Outcome) Retried() bool { return o.kind == kindFail || o.kind == kindFailAfter }

// Delay returns after how long the outcome asks for the next pass. Zero means that it does not say.
func (o Outcome) Delay() time.Duration { return o.after }

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
	if o.writes != WriteChanges {
		text += ".Writing(" + o.writes.String() + ")"
	}
	return text
}

// CleanupOutcome is what Cleanup returns. The zero value is [KeepUntilEvent], so that the finalizer is
// never removed by omission.
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
	cleanupDone
	cleanupFailed
)

// CleanedUp means that nothing is left to clean up. The finalizer is removed.
func CleanedUp() CleanupOutcome { return CleanupOutcome{kind: cleanupDone} }

// Keep keeps the finalizer. Cleanup is called again after d. Zero or less means one second.
func Keep(d time.Duration) CleanupOutcome {
	if d <= 0 {
		d = time.Second
	}
	return CleanupOutcome{kind: cleanupKeep, after: d}
}

// KeepUntilEvent keeps the finalizer. Cleanup is called again after the next event or after
// [Options.MaxInterval].
func KeepUntilEvent() CleanupOutcome { return CleanupOutcome{} }

// CleanupFailed keeps the finalizer. Cleanup is retried according to the controller's [Retry] policy.
func CleanupFailed(err error) CleanupOutcome {
	return CleanupOutcome{kind: cleanupFailed, err: orUnnamed(err)}
}

// Because returns the outcome with the CamelCase reason that the status shows.
func (o CleanupOutcome) Because(reason string) CleanupOutcome { o.reason = reason; return o }

// Err returns the error of a failed outcome, and nil for any other.
func (o CleanupOutcome) Err() error { return o.err }

// Done reports whether nothing is left to clean up.
func (o CleanupOutcome) Done() bool { return o.kind == cleanupDone }

// Delay returns after how long Cleanup is to be called again. Zero means that the outcome does not say.
func (o CleanupOutcome) Delay() time.Duration { return o.after }

// String returns the outcome as an author makes it, with the text of its error.
func (o CleanupOutcome) String() string {
	text := ""
	switch o.kind {
	case cleanupKeepUntilEvent:
		text = "KeepUntilEvent()"
	case cleanupKeep:
		text = fmt.Sprintf("Keep(%s)", o.after)
	case cleanupDone:
		text = "CleanedUp()"
	case cleanupFailed:
		text = fmt.Sprintf("CleanupFailed(%v)", o.err)
	}
	if o.reason != "" {
		text += ".Because(" + o.reason + ")"
	}
	return text
}

// ErrorOutcome is what OnError returns. The zero value is [RetryError].
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

// RetryError means that the pass is retried according to the controller's [Retry] policy.
func RetryError() ErrorOutcome { return ErrorOutcome{} }

// NoRetry means that the pass is not retried before the next event.
func NoRetry() ErrorOutcome { return ErrorOutcome{kind: errorNoRetry} }

// RetryIn means that the pass is retried after d instead of the policy's delay.
func RetryIn(d time.Duration) ErrorOutcome { return ErrorOutcome{kind: errorRetryIn, after: d} }

// WithoutStatus has the pass write nothing to the status: neither what the author changed nor that the pass failed. It is
// for failures of which users need not know yet, such as the first of several retries. The status stays about the pass
// before, with its generation; the failure is in the log and in metrics alone, and there is no event.
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

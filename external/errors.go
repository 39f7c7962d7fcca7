package external

import (
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// Class says what an error of the external API means for the operator.
type Class int

const (
	// ClassUnknown: the default rules apply. Errors that they do not know are ClassTransient.
	ClassUnknown Class = iota
	// ClassTransient: a retry may succeed.
	ClassTransient
	// ClassThrottled: too many requests. No object of the scope makes any call, not even a read, before
	// the time that the API asked for.
	ClassThrottled
	// ClassDenied: wrong or insufficient credentials.
	ClassDenied
	// ClassInvalid: the request is invalid; only a new spec helps.
	ClassInvalid
	// ClassConflict: the current state of the resource does not allow the request.
	ClassConflict
	// ClassTerminal: the call fails until somebody intervenes.
	ClassTerminal
	// ClassAmbiguous: the request may or may not have taken effect; only an observation shows it.
	ClassAmbiguous
	// ClassNotReady: something that the request needs does not exist yet. This is not a failure.
	ClassNotReady
)

// String returns the name of the class, as in "Throttled".
func (c Class) String() string { return decide.Class(c).String() }

// Error is an error with a class. Its text is that of the error it wraps.
type Error struct {
	// Class is what the error means.
	Class Class
	// After is when to try again. Zero means that the operator decides. For [ClassThrottled] it is
	// limited to between 1 s and 10 min, otherwise as [Observation.PollAfter] is.
	After time.Duration
	// Paths names the fields of the object that the API refused, for [ClassInvalid].
	Paths []string
	// Err is the cause, never nil.
	Err error
}

// Error returns the text of the cause, preceded by the refused fields if there are any.
func (e *Error) Error() string {
	if len(e.Paths) == 0 {
		return e.Err.Error()
	}
	return strings.Join(e.Paths, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Throttled returns err with [ClassThrottled]. after is how long the API asked to wait; zero if it
// did not say.
func Throttled(err error, after time.Duration) error {
	return classed(ClassThrottled, err, &Error{After: after})
}

// Denied returns err with [ClassDenied]: wrong or insufficient credentials.
func Denied(err error) error { return classed(ClassDenied, err, &Error{}) }

// Invalid returns err with [ClassInvalid]: the API refuses what the spec asks for. paths names the
// fields, for example "spec.replicas".
func Invalid(err error, paths ...string) error {
	return classed(ClassInvalid, err, &Error{Paths: paths})
}

// Conflict returns err with [ClassConflict]: the current state of the resource does not allow the
// request.
func Conflict(err error) error { return classed(ClassConflict, err, &Error{}) }

// Transient returns err with [ClassTransient]: a retry may succeed.
func Transient(err error) error { return classed(ClassTransient, err, &Error{}) }

// Terminal returns err with [ClassTerminal]: only a person can help.
func Terminal(err error) error { return classed(ClassTerminal, err, &Error{}) }

// NotReady returns err with [ClassNotReady]: something that the request needs does not exist yet.
// after is when to try again; zero if unknown.
func NotReady(err error, after time.Duration) error {
	return classed(ClassNotReady, err, &Error{After: after})
}

// Ambiguous returns err with [ClassAmbiguous]: the request may or may not have taken effect.
func Ambiguous(err error) error { return classed(ClassAmbiguous, err, &Error{}) }

// classed fills in e; nil errors stay nil.
func classed(c Class, err error, e *Error) error {
	if err == nil {
		return nil
	}
	e.Class, e.Err = c, err
	return e
}

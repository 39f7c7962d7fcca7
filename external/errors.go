package external

import (
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// Class is what an error of an external API means to the operator.
type Class int

const (
	// ClassUnknown: leave it to the default rules, which end in Transient.
	ClassUnknown Class = iota
	// ClassTransient: trying again may help.
	ClassTransient
	// ClassThrottled: too many requests; nothing is called for any object of the kind until
	// the time that the API asked for is over, reads and deletions included.
	ClassThrottled
	// ClassDenied: credentials or permissions.
	ClassDenied
	// ClassInvalid: the request itself is refused; only a new spec helps.
	ClassInvalid
	// ClassConflict: the state of the thing does not allow the request now.
	ClassConflict
	// ClassTerminal: nothing but a person helps.
	ClassTerminal
	// ClassAmbiguous: unknown whether a mutating request took effect; only looking helps.
	ClassAmbiguous
	// ClassNotReady: something that the request needs is not there yet; waiting helps and
	// it is not a failure.
	ClassNotReady
)

// String is the class in one word.
func (c Class) String() string { return decide.Class(c).String() }

// Error is an error whose class is known. Its text is that of the error it wraps.
type Error struct {
	// Class is what the error means.
	Class Class
	// After is when to try again. Zero leaves it to the operator. With [ClassThrottled] it
	// counts as at least 1 s and at most 10 min, else as [Observation.PollAfter] does.
	After time.Duration
	// Paths are the fields of the object that the API refused, for [ClassInvalid].
	Paths []string
	// Err is the cause, never nil.
	Err error
}

// Error returns the cause's text, and the refused fields if there are any.
func (e *Error) Error() string {
	if len(e.Paths) == 0 {
		return e.Err.Error()
	}
	return strings.Join(e.Paths, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Throttled says that the API wants fewer requests; after is what it asked to wait, zero
// if it did not say.
func Throttled(err error, after time.Duration) error {
	return classed(ClassThrottled, err, &Error{After: after})
}

// Denied says that credentials are wrong or do not suffice.
func Denied(err error) error { return classed(ClassDenied, err, &Error{}) }

// Invalid says that the API refuses what the spec asks for. paths name the fields, for
// example "spec.replicas".
func Invalid(err error, paths ...string) error {
	return classed(ClassInvalid, err, &Error{Paths: paths})
}

// Conflict says that the thing's present state does not allow the request.
func Conflict(err error) error { return classed(ClassConflict, err, &Error{}) }

// Transient says that trying again may help.
func Transient(err error) error { return classed(ClassTransient, err, &Error{}) }

// Terminal says that only a person can help.
func Terminal(err error) error { return classed(ClassTerminal, err, &Error{}) }

// NotReady says that something needed is not there yet; after is when to look again, zero
// if unknown.
func NotReady(err error, after time.Duration) error {
	return classed(ClassNotReady, err, &Error{After: after})
}

// Ambiguous says that a mutating request may or may not have taken effect.
func Ambiguous(err error) error { return classed(ClassAmbiguous, err, &Error{}) }

// classed fills e in; a nil error stays nil.
func classed(c Class, err error, e *Error) error {
	if err == nil {
		return nil
	}
	e.Class, e.Err = c, err
	return e
}

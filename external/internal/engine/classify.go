package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// classification is what an error means, and how it is reported.
type classification struct {
	class   decide.Class
	timeout bool
	after   time.Duration
	// absent reports whether the API says that the resource does not exist.
	absent bool
	// credentials reports whether the API says that it does not know the credentials.
	credentials bool
	// unreachable says in the words of this package why the API cannot be reached; empty if the error
	// does not show that. It is safe to report for every object.
	unreachable string
	text        string
	// broken are panics of the error's own methods, and of the driver's Classify.
	broken []*guard.PanicError
	// crash is the panic of the driver in the call itself; nil if it did not panic there.
	crash *guard.PanicError
}

// classify returns what err means. A class that the error carries comes first, then the driver's,
// then what Go's own errors and those of HTTP clients show. For a mutating call, an error that
// leaves the effect open is ClassAmbiguous. classify calls methods of err, which may be the
// driver's type and a nil pointer: one that panics contributes nothing.
func classify(err error, by Errors, mutating bool) classification {
	var c classification
	c.ask("Error", func() { c.text = plain.Error(err) })
	if c.text == "" {
		c.text = fmt.Sprintf("an error (%T) without a text", err)
	}
	c.ask("Unwrap, As or Is of an error", func() { c.byMaker(err, by) })
	if c.class == decide.ClassUnknown && by.Classify != nil {
		c.ask("Classify", func() { c.class = by.Classify(err) })
	}
	if c.class == decide.ClassUnknown {
		c.ask("StatusCode or RetryAfter of an error", func() { c.byDefault(err, mutating) })
	}
	if c.class == decide.ClassUnknown {
		c.class = openEnded(mutating)
	}
	c.timeout = c.timeout && (c.class == decide.ClassTransient || c.class == decide.ClassAmbiguous)
	for _, p := range c.broken {
		c.text += "; " + p.Error()
	}
	return c
}

// ask calls a method of an error or Classify.
func (c *classification) ask(method string, f func()) {
	_, err := guarded(method, func() (struct{}, error) { f(); return struct{}{}, nil })
	if p, is := err.(*guard.PanicError); is { //nolint:errorlint // guarded wraps nothing
		c.broken = append(c.broken, p)
	}
}

// byMaker applies what the error itself says.
func (c *classification) byMaker(err error, by Errors) {
	c.timeout = errors.Is(err, context.DeadlineExceeded) || timedOut(err)
	switch {
	case c.timeout:
		c.unreachable = "it does not answer in time"
	case refusedConnection(err):
		c.unreachable = "it refuses connections"
	case isNetwork(err):
		c.unreachable = "the network fails"
	}
	if _, ok := errors.AsType[mistake](err); ok {
		c.class = decide.ClassTerminal
		return
	}
	if by.Declared == nil {
		return
	}
	if class, after, said := by.Declared(err); said {
		c.class, c.after = class, after
	}
}

// openEnded is the class of an error that leaves a call's effect open.
func openEnded(mutating bool) decide.Class {
	if mutating {
		return decide.ClassAmbiguous
	}
	return decide.ClassTransient
}

func (c *classification) byDefault(err error, mutating bool) {
	status, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	switch {
	case ok:
		c.byStatus(status.StatusCode(), openEnded(mutating))
		if a, ok := errors.AsType[interface {
			error
			RetryAfter() time.Duration
		}](err); ok && c.after == 0 {
			c.after = a.RetryAfter()
		}
	case refusedConnection(err): // nothing was sent
		c.class = decide.ClassTransient
	case c.timeout, isNetwork(err), errors.Is(err, context.Canceled):
		c.class = openEnded(mutating)
	default:
		c.class = decide.ClassTransient
	}
}

func (c *classification) byStatus(code int, open decide.Class) {
	c.class = decide.ClassTransient
	c.credentials = code == http.StatusUnauthorized || code == http.StatusProxyAuthRequired
	if code >= http.StatusInternalServerError && c.unreachable == "" {
		c.unreachable = "it answers with status " + strconv.Itoa(code)
	}
	switch code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		c.class = decide.ClassInvalid
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusPaymentRequired:
		c.class = decide.ClassDenied
	case http.StatusNotFound, http.StatusGone:
		c.absent = true
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusLocked:
		c.class = decide.ClassConflict
	case http.StatusTooManyRequests:
		c.class = decide.ClassThrottled
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		c.class, c.timeout = open, true
	case http.StatusBadGateway:
		c.class = open
	}
}

func timedOut(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

func isNetwork(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// refusedConnection reports whether the request of err was never sent.
func refusedConnection(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// mistake is a bug of the driver; only a new version of the driver helps.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

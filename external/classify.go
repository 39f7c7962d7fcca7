package external

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// classification is what an error means, and how it is shown.
type classification struct {
	class   Class
	timeout bool
	after   time.Duration
	// absent: the API says that the thing does not exist.
	absent bool
	text   string
}

// classify says what err means. What its maker said comes first, then the driver, then what
// errors of Go's own and of HTTP clients tell. Of a call that changes something an error
// that leaves its effect open is Ambiguous.
func classify(err error, driver Classifier, mutating bool) classification {
	c := classification{after: afterOf(err), text: plainText(err)}
	c.timeout = errors.Is(err, context.DeadlineExceeded) || timedOut(err)
	if e, ok := errors.AsType[*Error](err); ok {
		c.class = e.Class
	}
	if c.class == ClassUnknown && driver != nil {
		c.class = driver.Classify(err)
	}
	if c.class == ClassUnknown {
		c.byDefault(err, mutating)
	}
	c.timeout = c.timeout && (c.class == ClassTransient || c.class == ClassAmbiguous)
	return c
}

func (c *classification) byDefault(err error, mutating bool) {
	unclear := ClassTransient
	if mutating {
		unclear = ClassAmbiguous
	}
	c.class = ClassTransient
	status, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	switch {
	case ok:
		c.byStatus(status.StatusCode(), unclear)
		if a, ok := errors.AsType[interface {
			error
			RetryAfter() time.Duration
		}](err); ok && c.after == 0 {
			c.after = a.RetryAfter()
		}
	case refusedConnection(err): // nothing was sent
	case c.timeout, isNetwork(err), errors.Is(err, context.Canceled):
		c.class = unclear
	}
}

func (c *classification) byStatus(code int, unclear Class) {
	switch code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		c.class = ClassInvalid
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusPaymentRequired:
		c.class = ClassDenied
	case http.StatusNotFound, http.StatusGone:
		c.absent = true
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusLocked:
		c.class = ClassConflict
	case http.StatusTooManyRequests:
		c.class = ClassThrottled
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		c.class, c.timeout = unclear, true
	case http.StatusBadGateway:
		c.class = unclear
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

// refusedConnection tells an error of a request that never left.
func refusedConnection(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// What differs from one occurrence of an error to the next, and would make a status that
// never rests.
var (
	localAddress = regexp.MustCompile(`[\w.:\[\]%-]+:\d+->`)
	requestID    = regexp.MustCompile(`(?i)[\s,;]*[(\[]?\b(?:x-)?(?:amzn?-|ms-)?(?:request|req|trace|correlation|operation)[-_ ]?id\b["']?\s*[:=]?\s*["']?[\w.:/+-]*\d[\w.:/+-]*["']?[)\]]?`)
	pointer      = regexp.MustCompile(`\b0x[0-9a-f]{6,}\b`)
	timestamp    = regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`)
)

// plainText is an error for people: one line, the same whenever the same thing happens.
func plainText(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	text = localAddress.ReplaceAllString(text, "")
	text = requestID.ReplaceAllString(text, "")
	text = pointer.ReplaceAllString(text, "(address)")
	text = timestamp.ReplaceAllString(text, "(time)")
	return strings.TrimRight(strings.TrimSpace(text), ".;,: ")
}

package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	natsgo "github.com/nats-io/nats.go"
)

// awayError is the reason why requests cannot be sent. Its text stays the same as long as the reason
// does, says what to do, and contains no ports and times.
type awayError struct {
	rank int // the higher, the more informative
	text string
}

func (n *awayError) Error() string { return n.text }

// unreadable is the error for a credential that cannot be read.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// silent is the reason why requests cannot be sent if nothing is known.
var silent = &awayError{0, "does not answer; start it, or correct the operator's --nats-url"} //nolint:gochecknoglobals // a constant

// reasonFor turns an error of the connection into a sentence, which quotes NATS.
func reasonFor(err error) *awayError {
	_, own := errors.AsType[unreadable](err)
	_, file := errors.AsType[*fs.PathError](err)
	lookup, dns := errors.AsType[*net.DNSError](err)
	switch {
	case refused(err) != "":
		return &awayError{4, "refuses the operator's credentials: " + refused(err) + "; correct them, or the operator's user in NATS"}
	case own || file:
		return &awayError{5, "cannot be reached, because the operator's credentials cannot be read: " + words(err) + ""}
	case isTLS(err):
		return &awayError{3, "cannot be reached by TLS: " + words(err) + "; correct the operator's --nats-tls flags, or the server's certificate"}
	case dns && lookup.IsNotFound:
		return &awayError{2, "does not answer: there is no host " + lookup.Name + "; correct the operator's --nats-url"}
	case dns:
		return &awayError{2, "does not answer: the name of host " + lookup.Name + " cannot be looked up"}
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, natsgo.ErrNoServers):
		return &awayError{1, "does not answer: connection refused; start it, or correct the operator's --nats-url"}
	}
	return silent
}

// refused returns the text with which NATS refuses credentials, or an empty string for other errors.
func refused(err error) string {
	for said, text := range map[error]string{
		natsgo.ErrAuthorization:      "Authorization Violation",
		natsgo.ErrAuthExpired:        "User Authentication Expired",
		natsgo.ErrAuthRevoked:        "User Authentication Revoked",
		natsgo.ErrAccountAuthExpired: "Account Authentication Expired",
	} {
		if errors.Is(err, said) {
			return text
		}
	}
	return ""
}

func isTLS(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, header := errors.AsType[tls.RecordHeaderError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	return certificate || alert || header || unknown ||
		errors.Is(err, natsgo.ErrSecureConnRequired) || errors.Is(err, natsgo.ErrSecureConnWanted)
}

func words(err error) string { return strings.TrimPrefix(err.Error(), "nats: ") }

// troubles are the recent reasons for a missing connection. Several servers may give different reasons in
// turn; messages always show the same one.
type troubles struct {
	mu   sync.Mutex
	last map[awayError]time.Time
}

// troubleKept is longer than it takes to try all servers.
const troubleKept = 10 * time.Second

func (t *troubles) note(err error) {
	if err == nil || errors.Is(err, natsgo.ErrPermissionViolation) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.last == nil {
		t.last = map[awayError]time.Time{}
	}
	for n, at := range t.last {
		if now.Sub(at) > troubleKept {
			delete(t.last, n)
		}
	}
	t.last[*reasonFor(err)] = now
}

func (t *troubles) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.last)
}

// worst returns the most informative reason.
func (t *troubles) worst() *awayError {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := silent
	for n, at := range t.last {
		if time.Since(at) > troubleKept {
			continue
		}
		if n.rank > out.rank || n.rank == out.rank && n.text < out.text {
			out = &n
		}
	}
	return out
}

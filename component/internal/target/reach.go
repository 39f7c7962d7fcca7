package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// grace is how long an API server may not answer before that is reported on components that need
	// nothing from it now. One lost connection is no news.
	grace = 2 * time.Second
	// probing is how often an API server that does not answer is asked, at most.
	probing = time.Second
	// patience is how long a request may take. Watches may take longer.
	patience = 15 * time.Second
)

// errCredentials is why a request failed of which the API server does not know who sent it.
var errCredentials = errors.New("credentials are not accepted")

// UnreachableError is the error of a request to which no API server answered, or one that does not accept
// the credentials.
type UnreachableError struct {
	// Server is the URL, without credentials.
	Server string
	Err    error
}

// Error names the server.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, errCredentials) {
		return fmt.Sprintf("the cluster %s does not accept the credentials; renew the kubeconfig", e.Server)
	}
	return fmt.Sprintf("the cluster %s cannot be reached: %s", e.Server, cause(e.Err))
}

// Unwrap returns what went wrong.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Unreachable reports whether an error is, or wraps, an [UnreachableError].
func Unreachable(err error) bool {
	_, ok := errors.AsType[*UnreachableError](err)
	return ok
}

// cause is what a user needs to know of a failed request. It is the same each time.
func cause(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// reach knows whether an API server answers, from the requests that are sent anyway.
type reach struct {
	server string
	// changed is called when the server stops answering, and when it answers again.
	changed func()

	mu sync.Mutex
	// since is when the first request failed after the last answer; zero if the last one was answered.
	since time.Time
	last  error
	// down: it has not answered for so long that it is not asked by everybody any more.
	down bool
	// next is when it may be asked again.
	next time.Time
}

// failed notes a request that was not answered.
func (r *reach) failed(err error) {
	r.mu.Lock()
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
	}
	r.last = err
	fell := !r.down && (now.Sub(r.since) >= grace || errors.Is(err, errCredentials)) // which do not come back
	r.down = r.down || fell
	r.mu.Unlock()
	if fell {
		r.changed()
	}
}

// answered notes an answer.
func (r *reach) answered() {
	r.mu.Lock()
	rose := r.down
	r.since, r.last, r.down = time.Time{}, nil, false
	r.mu.Unlock()
	if rose {
		r.changed()
	}
}

// check returns an error if the server does not answer. While it does, and while it is not clear yet, it
// costs nothing; after that, one caller per second asks.
func (r *reach) check(ctx context.Context, ask func(context.Context) error) error {
	r.mu.Lock()
	now := time.Now()
	down, last, mine := r.down, r.last, r.down && !now.Before(r.next)
	if mine {
		r.next = now.Add(probing)
	}
	r.mu.Unlock()
	if !down {
		return nil
	}
	if mine {
		if err := ask(ctx); err == nil {
			return nil
		}
	}
	return &UnreachableError{Server: r.server, Err: last}
}

// transport sends requests and notes whether they are answered.
type transport struct {
	*reach

	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	outer := r.Context()
	cancel := context.CancelFunc(func() {})
	if watch := r.URL.Query().Get("watch"); watch != "true" && watch != "1" {
		var ctx context.Context
		ctx, cancel = context.WithTimeout(outer, patience)
		r = r.WithContext(ctx)
	}
	answer, err := t.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		err = errors.Join(errCredentials, answer.Body.Close())
	}
	if err != nil {
		cancel()
		if outer.Err() != nil { // the caller gave up
			return nil, err
		}
		t.failed(err)
		return nil, &UnreachableError{Server: t.server, Err: err}
	}
	t.answered()
	answer.Body = body{answer.Body, cancel}
	return answer, nil
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body ends the time of a request when it has been read.
type body struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

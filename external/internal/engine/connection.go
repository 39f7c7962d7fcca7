package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

const (
	// connectPause is how long a failure to connect is the answer to everyone who asks, so that a
	// thousand objects do not try a thousand times.
	connectPause = time.Second
	// remakeMost is the longest pause before a refused client is replaced again; the first is
	// connectPause, and it doubles.
	remakeMost = time.Minute
	// deniedTwice is how many calls in a row must be denied, with no success between them, before
	// the client itself is suspected. One answer that the credentials are unknown is enough.
	deniedTwice = 2
)

// connectFunc makes a client. known identifies what the present client is made from; empty if it is to be replaced
// whatever that is, or if there is none.
type connectFunc func(ctx context.Context, known string) (attached, error)

// connection makes the client of a scope and shares it. A client that the API
// refuses is replaced by a new one.
type connection struct {
	connect connectFunc

	mu      sync.Mutex
	current *connected
	flight  *flight
	// failed is when Connect failed last, for what version and how.
	failed time.Time
	tried  string
	err    error
	// process ends with the process; nil until it is known.
	process context.Context //nolint:containedctx // clients live as long as the process
	// denied counts denials in a row. suspect: the client is to be replaced, but not before next.
	denied  int
	suspect bool
	remade  int
	next    time.Time
}

// connected is one client. It is closed when it is retired and not in use.
type connected struct {
	attached

	of      *connection
	uses    int
	retired bool
	ended   bool
	// unused reports whether the client is to end once no call uses it, because the process ends
	// or it was replaced.
	unused bool
}

// flight is a call of Connect in progress.
type flight struct {
	done  chan struct{}
	until time.Time
	// version is what the client is made from, and err why there is none. err is set when done is closed.
	version string
	err     error
}

// get returns the client, connecting first if necessary. The caller releases it.
func (c *connection) get(ctx context.Context, deadline time.Duration) (*connected, error) {
	return c.getBy(ctx, deadline, "", c.connect)
}

// getBy is get with another connect function, for a version of what the client is made from: a client of another version
// is replaced, or there is none.
func (c *connection) getBy(ctx context.Context, deadline time.Duration, version string, connect connectFunc) (*connected, error) {
	for {
		k, f, err := c.tryBy(ctx, deadline, version, connect)
		if k != nil || err != nil {
			return k, err
		}
		wait := time.NewTimer(time.Until(f.until))
		select {
		case <-f.done:
		case <-wait.C:
		}
		wait.Stop()
		c.mu.Lock()
		switch {
		case c.flight == f:
			defer c.mu.Unlock()
			return nil, fmt.Errorf("the driver has not returned from Connect within %s; it must obey its context, or the operator must be restarted", deadline)
		case f.version != version: // it was for others
			c.mu.Unlock()
		case c.current != nil && (f.err == nil || c.current.version == version): // what was read may be newer than the version
			return c.use(), nil
		default:
			defer c.mu.Unlock()
			return nil, f.err
		}
	}
}

// tryBy returns the client, why there is none, or the call of Connect that makes one.
func (c *connection) tryBy(ctx context.Context, deadline time.Duration, version string, connect connectFunc) (*connected, *flight, error) {
	c.mu.Lock()
	now := time.Now()
	same := c.current != nil && c.current.version == version
	replace := c.current != nil && c.flight == nil && (!same || c.suspect && !now.Before(c.next))
	switch {
	case same && !replace:
		return c.use(), nil, nil
	case c.flight == nil && c.err != nil && c.tried == version && now.Sub(c.failed) < connectPause && !same:
		defer c.mu.Unlock()
		return nil, nil, c.err
	case c.flight == nil:
		c.begin(ctx, deadline, version, connect)
	}
	defer c.mu.Unlock()
	return nil, c.flight, nil
}

// made reports whether there is a client.
func (c *connection) made() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil
}

// present returns the client that there is.
func (c *connection) present() (*connected, error) {
	c.mu.Lock()
	if c.current != nil {
		return c.use(), nil
	}
	defer c.mu.Unlock()
	return nil, errors.New("the client was closed")
}

// use returns the client and unlocks c.mu.
func (c *connection) use() *connected {
	defer c.mu.Unlock()
	c.current.uses++
	return c.current
}

// begin calls Connect.
func (c *connection) begin(ctx context.Context, deadline time.Duration, version string, connect connectFunc) {
	parent := c.process //nolint:contextcheck // the client outlives the pass
	if parent == nil {
		parent = ctx
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), deadline)
	f := &flight{done: make(chan struct{}), until: time.Now().Add(deadline + overtime), version: version}
	c.flight = f
	known := ""
	if c.current != nil && !c.suspect {
		known = c.current.digest
	}
	go func() {
		defer cancel()
		made := result[attached]{err: errEnded}
		defer func() { c.land(f, made) }()
		made.value, made.err = guarded("Connect", func() (attached, error) { return connect(ctx, known) })
	}()
}

// land takes the result of a call of Connect. If it failed, a client that is to be replaced stays.
func (c *connection) land(f *flight, made result[attached]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(f.done)
	c.flight = nil
	if made.value.kept && made.err == nil && c.current != nil {
		c.current.version, c.err = made.value.version, nil
		return
	}
	if c.current != nil && c.suspect {
		c.next = time.Now().Add(min(connectPause<<min(c.remade, 10), remakeMost))
		c.remade++
	}
	if made.err != nil {
		c.failed, c.tried = time.Now(), f.version
		c.err = toldOnce(made.err)
		f.err = c.err
		return
	}
	if before := c.current; before != nil {
		before.retired, before.unused = !same(before.client, made.value.client), true
		before.endIfUnused()
	}
	ending := c.process != nil && c.process.Err() != nil
	c.current = &connected{attached: made.value, of: c, unused: ending}
	c.suspect, c.denied, c.err = false, 0, nil
}

// same reports whether Connect returned the client that it had returned before.
func same(a, b any) bool {
	equal, err := guarded("==", func() (bool, error) { return a == b, nil })
	return err == nil && equal
}

// toldOnce reads the text of a driver's error here, where a panic of its Error method does no
// harm.
func toldOnce(err error) error {
	text := classify(err, Errors{}, false).text
	return &connectError{text, err}
}

// connectError is why there is no client.
type connectError struct {
	text string
	err  error
}

func (e *connectError) Error() string { return e.text }
func (e *connectError) Unwrap() error { return e.err }

// answered notes the outcome of a call by the client. failure is nil if the call succeeded.
func (k *connected) answered(failure *classification) {
	if k == nil {
		return
	}
	c := k.of
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.current != k:
	case failure != nil && failure.class == decide.ClassDenied:
		c.denied++
		c.suspect = c.suspect || failure.credentials || c.denied >= deniedTwice
	case failure == nil:
		c.denied, c.suspect, c.remade = 0, false, 0
	}
}

// hides returns what must not appear in messages.
func (k *connected) hides() []string {
	if k == nil {
		return nil
	}
	return k.secrets
}

// retain keeps the client for a call that may outlive its pass, and releases it.
func (k *connected) retain() {
	if k == nil {
		return
	}
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.uses++
}

// release ends a use of the client.
func (k *connected) release() {
	if k == nil {
		return
	}
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.uses--
	k.endIfUnused()
}

// endIfUnused ends a client that is no longer in use. A replaced one is closed; when the process
// ends, only the context is cancelled, because others may share the client.
func (k *connected) endIfUnused() {
	if k.uses > 0 || !k.unused || k.ended {
		return
	}
	k.ended = true
	if k.of.current == k {
		k.of.current = nil
	}
	if k.retired {
		go k.close() // it may take long
		return
	}
	k.end()
}

// livesIn sets the process that the client's context ends with.
func (c *connection) livesIn(process context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process = process
}

// processEnds ends the client's context once no call uses it.
func (c *connection) processEnds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.current; k != nil {
		k.unused = true
		k.endIfUnused()
	}
}

// discard closes the client, which will not be requested again, once no call uses it. It returns
// false, and does nothing, while Connect is in progress.
func (c *connection) discard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight != nil {
		return false
	}
	if k := c.current; k != nil {
		k.retired, k.unused = true, true
		k.endIfUnused()
	}
	return true
}

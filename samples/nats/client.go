package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/external"
)

// Client sends requests to the JetStream API.
//
// The calls of the client library are made for applications: it has different ones for pull and for
// push consumers, it queries the account before it creates a bucket, and its updates reset settings of
// newer servers that the library does not know. This client sends exactly one request for each
// operation. It uses the library's types.
type Client struct {
	send   func(ctx context.Context, subject string, body []byte) ([]byte, error)
	close  func()
	up     atomic.Int64 // when the connection was made, in nanoseconds; 0 if unknown
	where  string       // the address, without secrets
	name   string       // identifies the NATS server and account
	prefix string       // prefix of the subjects of the JetStream API

	mu      sync.Mutex
	waiting map[uint64]request // requests that wait for an answer
	last    uint64             // the last key in waiting
}

// request is a request that waits for its answer.
type request struct {
	subject string
	end     context.CancelCauseFunc
}

var (
	// errLost ends requests whose connection was lost, because no answer can arrive.
	errLost = errors.New("the connection was lost before the answer arrived")
	// errDenied ends requests that NATS did not permit, because no answer will arrive.
	errDenied = errors.New("not allowed")
)

// requestTimeout limits one request. NATS answers within milliseconds, or within seconds if a cluster
// has to elect a leader.
const requestTimeout = 10 * time.Second

// NewClient returns a client that sends requests by calling send, which returns the raw answer of NATS.
// It is for existing connections and for tests without NATS. If send returns an error, the request may
// have taken effect. where is the address of NATS in messages.
func NewClient(where string, send func(ctx context.Context, subject string, body []byte) ([]byte, error)) *Client {
	return &Client{send: send, close: func() {}, where: where, name: where, prefix: "$JS.API.", waiting: map[uint64]request{}}
}

// Close closes the connection.
func (c *Client) Close() { c.close() }

// connected returns when the connection was made, or a time long ago if that is unknown.
func (c *Client) connected() time.Time { return time.Unix(0, c.up.Load()) }

// read sends a request that changes nothing.
func (c *Client) read(ctx context.Context, subject string, in, out any) error {
	_, err := c.request(ctx, subject, in, out)
	return err
}

// change sends a request that changes something. If it was sent and no answer arrived, the error is
// ambiguous: only an observation shows whether the request took effect.
func (c *Client) change(ctx context.Context, subject string, in, out any) error {
	sent, err := c.request(ctx, subject, in, out)
	if _, answered := errors.AsType[*refusal](err); err != nil && sent && !answered {
		return external.Ambiguous(err)
	}
	return err
}

// request sends one request and decodes the answer into out. If NATS refuses it, the error is a
// *refusal.
func (c *Client) request(ctx context.Context, subject string, in, out any) (sent bool, err error) {
	body, err := encode(in)
	if err != nil {
		return false, fmt.Errorf("encode a request to %s: %w", subject, err)
	}
	ctx, done := c.begin(ctx, c.prefix+subject)
	defer done()
	data, err := c.send(ctx, c.prefix+subject, body)
	if err != nil {
		return c.explain(c.prefix+subject, err)
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return true, fmt.Errorf("NATS at %s answers %s with invalid JSON: %w", c.where, subject, err)
	}
	if answer.Error != nil {
		return true, &refusal{api: *answer.Error}
	}
	if err := json.Unmarshal(data, out); err != nil {
		return true, fmt.Errorf("this operator does not understand the answer of NATS at %s to %s: %w", c.where, subject, err)
	}
	return true, nil
}

// explain turns an error of the connection into one that users understand.
func (c *Client) explain(subject string, err error) (sent bool, _ error) {
	if n, not := errors.AsType[*awayError](err); not {
		return false, external.Transient(fmt.Errorf("NATS at %s %w", c.where, n))
	}
	switch {
	case errors.Is(err, natsgo.ErrNoResponders):
		return false, external.Transient(fmt.Errorf("NATS at %s answers, but JetStream does not%s", c.where, c.noJetStream()))
	case errors.Is(err, errDenied):
		return false, external.Denied(fmt.Errorf(
			"NATS at %s does not let the operator publish to %s: allow this for the operator's user", c.where, subject))
	case errors.Is(err, errLost):
		return true, fmt.Errorf("NATS at %s: %w", c.where, errLost)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrTimeout):
		return true, fmt.Errorf("NATS at %s does not answer in time", c.where)
	}
	return true, fmt.Errorf("NATS at %s: %w", c.where, err)
}

// noJetStream says what to do if nothing serves the JetStream API.
func (c *Client) noJetStream() string {
	if domain, ok := strings.CutSuffix(strings.TrimPrefix(c.prefix, "$JS."), ".API."); ok {
		return fmt.Sprintf(" in domain %q: correct the operator's --nats-domain, or enable JetStream there for the operator's account", domain)
	}
	return ": enable it for the server and the operator's account"
}

// begin starts a request that ends after a time limit or when its connection is lost.
func (c *Client) begin(ctx context.Context, subject string) (_ context.Context, done func()) {
	ctx, stop := context.WithTimeout(ctx, requestTimeout)
	ctx, end := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	key := c.last
	c.waiting[key] = request{subject, end}
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, key)
		end(nil)
		stop()
	}
}

// end ends the waiting requests for which fits returns true.
func (c *Client) end(cause error, fits func(request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.waiting {
		if fits(r) {
			r.end(cause)
		}
	}
}

// deny ends the requests that NATS did not permit. NATS reports this separately from the requests, and
// the library passes on only the text.
func (c *Client) deny(err error) {
	if !errors.Is(err, natsgo.ErrPermissionViolation) {
		return
	}
	_, rest, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, _ := strings.Cut(rest, `"`)
	c.end(errDenied, func(r request) bool { return r.subject == subject })
}

func encode(in any) ([]byte, error) {
	if in == nil {
		return nil, nil
	}
	return json.Marshal(in)
}

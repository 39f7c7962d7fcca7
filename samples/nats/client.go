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
// The client library's own calls are made for applications: there is one set of them for
// pull and another for push consumers, creating a bucket asks for the account first, and an
// update resets settings that a newer server has and the library does not know. So this
// is one request for each intention, with the library's types in it.
type Client struct {
	send   func(ctx context.Context, subject string, body []byte) ([]byte, error)
	close  func()
	up     atomic.Int64 // when the connection was made, in nanoseconds; 0 if somebody else made it
	where  string       // the address without secrets
	name   string       // which NATS and account these are
	prefix string       // of the subjects of the JetStream API

	mu      sync.Mutex
	waiting map[uint64]request // requests without an answer
	last    uint64             // the last key in waiting
}

// request is one that waits for its answer.
type request struct {
	subject string
	end     context.CancelCauseFunc
}

var (
	// errLost ends requests whose connection broke; no answer can come.
	errLost = errors.New("the connection broke before an answer came")
	// errDenied ends requests that NATS did not let through; no answer will come.
	errDenied = errors.New("not allowed")
)

// requestTimeout bounds one request. NATS answers within milliseconds; a cluster that
// elects a leader takes seconds.
const requestTimeout = 10 * time.Second

// NewClient returns a client whose requests are carried by send, which returns NATS's answer
// as it came: for a connection that is there already, and for tests without NATS. An error of
// send means that the request may have taken effect. where names NATS in messages.
func NewClient(where string, send func(ctx context.Context, subject string, body []byte) ([]byte, error)) *Client {
	return &Client{send: send, close: func() {}, where: where, name: where, prefix: "$JS.API.", waiting: map[uint64]request{}}
}

// Close ends the connection.
func (c *Client) Close() { c.close() }

// connected is when the connection was made; long ago if that is not known.
func (c *Client) connected() time.Time { return time.Unix(0, c.up.Load()) }

// read sends a request that changes nothing.
func (c *Client) read(ctx context.Context, subject string, in, out any) error {
	_, err := c.request(ctx, subject, in, out)
	return err
}

// change sends a request that changes something. If it was sent and no answer came, the
// error says that only looking tells whether it took effect.
func (c *Client) change(ctx context.Context, subject string, in, out any) error {
	sent, err := c.request(ctx, subject, in, out)
	if _, answered := errors.AsType[*refusal](err); err != nil && sent && !answered {
		return external.Ambiguous(err)
	}
	return err
}

// request sends one request and decodes the answer into out. An answer that refuses it is
// a *refusal.
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
		return true, fmt.Errorf("NATS at %s answers no JSON to %s: %w", c.where, subject, err)
	}
	if answer.Error != nil {
		return true, &refusal{api: *answer.Error}
	}
	if err := json.Unmarshal(data, out); err != nil {
		return true, fmt.Errorf("NATS at %s answers %s in a way that this operator does not understand: %w", c.where, subject, err)
	}
	return true, nil
}

// explain turns an error of the connection into one for people.
func (c *Client) explain(subject string, err error) (sent bool, _ error) {
	if n, not := errors.AsType[*awayError](err); not {
		return false, external.Transient(fmt.Errorf("NATS at %s %w", c.where, n))
	}
	switch {
	case errors.Is(err, natsgo.ErrNoResponders):
		return false, external.Transient(fmt.Errorf("NATS at %s answers, but JetStream does not%s", c.where, c.noJetStream()))
	case errors.Is(err, errDenied):
		return false, external.Denied(fmt.Errorf(
			"NATS at %s does not let the operator publish to %s: allow it for the operator's user", c.where, subject))
	case errors.Is(err, errLost):
		return true, fmt.Errorf("NATS at %s: %w", c.where, errLost)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, natsgo.ErrTimeout):
		return true, fmt.Errorf("NATS at %s does not answer in time", c.where)
	}
	return true, fmt.Errorf("NATS at %s: %w", c.where, err)
}

// noJetStream is what to do where nobody serves the JetStream API.
func (c *Client) noJetStream() string {
	if domain, ok := strings.CutSuffix(strings.TrimPrefix(c.prefix, "$JS."), ".API."); ok {
		return fmt.Sprintf(" in domain %q: correct the operator's --nats-domain, or switch JetStream on there for the operator's account", domain)
	}
	return ": switch it on for the server and the operator's account"
}

// begin bounds a request by time, and lets what happens to the connection end it.
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

// end ends the requests that wait and fit.
func (c *Client) end(cause error, fits func(request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.waiting {
		if fits(r) {
			r.end(cause)
		}
	}
}

// deny ends the requests that NATS did not let through. It says so apart from them, and
// the library passes on nothing but its sentence.
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

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// attached is a client of the external API, with the endpoint that it talks to.
type attached struct {
	client any
	// endpoint is empty if the driver does not distinguish endpoints.
	endpoint string
	// end cancels the context that Connect received for the client.
	end context.CancelFunc
	// digest identifies what the client was made from, and version what it was when that was last compared.
	digest, version string
	// secrets are values that must not appear in messages.
	secrets []string
	// kept: what clients are made from was written and is the same, so the present client stays.
	kept bool
}

// close ends a client, and closes it if it implements io.Closer.
func (a *attached) close() {
	a.end()
	if closer, ok := a.client.(io.Closer); ok {
		_, _ = guarded("Close", func() (struct{}, error) { return struct{}{}, closer.Close() })
	}
}

// attach returns a function that makes clients whose endpoint is known. The context that Connect
// receives lives as long as the client, and ends earlier only if ctx ends while Connect runs. A
// client whose endpoint cannot be determined yet is kept for the next try, unless it was denied.
func attach(connect func(context.Context) (any, error), endpoint func(context.Context, any) (string, error), errs Errors) connectFunc {
	var kept *attached // there is one call of Connect at a time
	return func(ctx context.Context, _ string) (attached, error) {
		if kept == nil {
			a, err := began(ctx, connect)
			if err != nil || endpoint == nil {
				return a, err
			}
			kept = &a
		}
		name, err := guarded("Endpoint", func() (string, error) { return endpoint(ctx, kept.client) })
		if err == nil {
			err = fitEndpoint("Options.Endpoint", name)
		}
		if err != nil {
			if classify(err, errs, false).class == decide.ClassDenied {
				kept.close()
				kept = nil
			}
			return attached{}, fmt.Errorf("ask which endpoint this is: %w", err)
		}
		a := *kept
		kept, a.endpoint = nil, name
		return a, nil
	}
}

// longestEndpoint bounds the name of an endpoint in a record.
const longestEndpoint = 512

// fitEndpoint returns what is wrong with the name of an endpoint; nil if it is valid. The name is
// recorded on every object, where everyone who may read objects can read it.
func fitEndpoint(of, name string) error {
	switch safe := plain.Safe(name); {
	case strings.Contains(safe, plain.Hidden) && !strings.Contains(name, plain.Hidden):
		return fmt.Errorf("the driver's %s returns what looks like credentials for an endpoint (%q); it must return a name without credentials", of, safe)
	case safe != name:
		return fmt.Errorf("the driver's %s returns the endpoint %q, which is no text", of, safe)
	case len(name) > longestEndpoint:
		return fmt.Errorf("the driver's %s returns the name of an endpoint of %d bytes; %d can be recorded", of, len(name), longestEndpoint)
	}
	return nil
}

// began calls Connect.
func began(ctx context.Context, connect func(context.Context) (any, error)) (attached, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, end)
	client, err := guarded("Connect", func() (any, error) { return connect(life) })
	a := attached{client: client, end: end}
	switch {
	case err != nil:
		end()
	case !inTime():
		a.close()
		err = errors.New("the driver took too long to connect")
	}
	return a, err
}

// connecting calls Connect of a connector. known is the digest of what the present client is made from.
func connecting(by *Connector, l *login, scope string, live client.Reader) connectFunc {
	return func(ctx context.Context, known string) (attached, error) {
		digest, secrets, err := l.load(ctx, live)
		if err != nil {
			return attached{}, err
		}
		if known != "" && digest == known {
			return attached{version: l.version, kept: true}, nil
		}
		endpoint := ""
		a, err := began(ctx, func(ctx context.Context) (client any, err error) {
			client, endpoint, err = by.Connect(ctx, scope, l.from)
			return client, err
		})
		if err != nil {
			return a, hidden(err, secrets)
		}
		if err := fitConnected(endpoint); err != nil {
			a.close()
			return attached{}, hidden(err, secrets)
		}
		a.endpoint, a.digest, a.version, a.secrets = endpoint, digest, l.version, secrets
		return a, nil
	}
}

// hidden is an error without secrets in its text.
func hidden(err error, secrets []string) error {
	if len(secrets) == 0 {
		return err
	}
	return &connectError{hide(classify(err, Errors{}, false).text, secrets), err}
}

// fitConnected reports what is wrong with the endpoint of a client that a connector made.
func fitConnected(endpoint string) error {
	if endpoint == "" {
		return errors.New("the driver's Connect returns no endpoint; it must name what the client talks to, for example the account")
	}
	return fitEndpoint("Connect", endpoint)
}

// scopeOf determines which client an object needs, and what it is made from.
//
// It is nil if all objects share a client. lend returns the object for the driver.
func (e *Engine) scopeOf(ctx context.Context, r Run, who subject, lend func() Object) (*shared, *login, error) {
	if e.options.Connector == nil {
		return e.clients.of(who.key, ""), nil, nil
	}
	obj := lend()
	l, err := e.loginOf(ctx, r, who, obj)
	if err != nil && (l == nil || obj.GetDeletionTimestamp().IsZero()) {
		return nil, l, err
	}
	s := e.clients.of(who.key, l.scope)
	if err != nil { // the client that there is still serves to delete
		if !s.connection.made() {
			return nil, l, err
		}
		l.present = true
	}
	return s, l, nil
}

// clientOf returns the client of a scope. The caller releases it.
func (e *Engine) clientOf(ctx context.Context, s *shared, l *login, live client.Reader) (*connected, error) {
	by := e.options.Connector
	if by == nil {
		return s.connection.get(ctx, e.callDeadline())
	}
	if l.present {
		return s.connection.present()
	}
	scope, _, _ := strings.Cut(l.scope, "\n")
	return s.connection.getBy(ctx, e.callDeadline(), l.version, connecting(by, l, scope, live))
}

// endpointOf returns the endpoint that a new object is pinned to; empty if that is not known yet,
// so that the object is pinned before the create.
func (e *Engine) endpointOf(ctx context.Context, r Run) string {
	s, l, err := e.scopeOf(ctx, r, subjectOf(r.Object()), func() Object { return copyOf(r.Object()) })
	if err != nil || l != nil && l.unkept != nil {
		return ""
	}
	c, err := e.clientOf(ctx, s, l, r.Live())
	if err != nil {
		return ""
	}
	defer c.release()
	return c.endpoint
}

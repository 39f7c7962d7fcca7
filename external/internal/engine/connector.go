package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

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
func attach(connect func(context.Context) (any, error), endpoint func(context.Context, any) (string, error), errs Errors) func(context.Context) (attached, error) {
	var kept *attached // there is one call of Connect at a time
	return func(ctx context.Context) (attached, error) {
		if kept == nil {
			a, err := live(ctx, connect)
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

// live calls Connect.
func live(ctx context.Context, connect func(context.Context) (any, error)) (attached, error) {
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

// connecting calls Connect of a connector, for an object of a scope.
func connecting(by *Connector, scope string, obj Object) func(context.Context) (attached, error) {
	return func(ctx context.Context) (attached, error) {
		endpoint := ""
		a, err := live(ctx, func(ctx context.Context) (client any, err error) {
			client, endpoint, err = by.Connect(ctx, scope, obj)
			return client, err
		})
		if err != nil {
			return a, err
		}
		if err := fitConnected(endpoint); err != nil {
			a.close()
			return attached{}, err
		}
		a.endpoint = endpoint
		return a, nil
	}
}

// fitConnected reports what is wrong with the endpoint of a client that a connector made.
func fitConnected(endpoint string) error {
	if endpoint == "" {
		return errors.New("the driver's Connect returns no endpoint; it must name what the client talks to, for example the account")
	}
	return fitEndpoint("Connect", endpoint)
}

// scopeOf determines which client an object needs. lend returns the object for the driver.
func (e *Engine) scopeOf(who subject, lend func() Object) (*shared, error) {
	if e.options.Connector == nil {
		return e.clients.of(who.key, ""), nil
	}
	obj := lend()
	name, err := pure(&e.abandoned, who, "Scope", func() (string, error) { return e.options.Connector.Scope(obj) })
	if err != nil {
		return nil, err
	}
	return e.clients.of(who.key, name), nil
}

// clientOf returns the client of a scope. The caller releases it.
func (e *Engine) clientOf(ctx context.Context, s *shared, lend func() Object) (*connected, error) {
	if e.options.Connector == nil {
		return s.connection.get(ctx, e.callDeadline())
	}
	return s.connection.getBy(ctx, e.callDeadline(), connecting(e.options.Connector, s.name, lend()))
}

// endpointOf returns the endpoint that a new object is pinned to; empty if that is not known yet,
// so that the object is pinned before the create.
func (e *Engine) endpointOf(ctx context.Context, obj Object) string {
	lend := func() Object { return copyOf(obj) }
	s, err := e.scopeOf(subjectOf(obj), lend)
	if err != nil {
		return ""
	}
	c, err := e.clientOf(ctx, s, lend)
	if err != nil {
		return ""
	}
	defer c.release()
	return c.endpoint
}

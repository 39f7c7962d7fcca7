package external

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Connector makes the clients of objects that do not all use the same one, because their specs
// name different accounts, regions or credentials. The objects of one scope share a client.
// Throttling and outages in one scope do not affect another.
type Connector[T client.Object, C any] interface {
	// Scope returns the scope of obj. It is pure. If it returns an error, nothing is called
	// for the object, and its status shows the error, which should say what to do: `spec.account
	// is not set; set it to "a" or "b"`. An object that is being deleted needs its scope, too.
	Scope(obj T) (string, error)

	// Connect makes the client of a scope when an object first needs it, and again when the API
	// refuses the client's credentials; see [Options.Connect]. Two scopes must not share a
	// client: when no object uses a scope any more, its client is closed if it is an
	// [io.Closer], and its context ends.
	Connect(ctx context.Context, r ConnectRequest[T]) (ConnectResponse[C], error)
}

// ConnectRequest asks for the client of a scope.
type ConnectRequest[T client.Object] struct {
	// Scope is what [Connector.Scope] returned.
	Scope string
	// Object is a copy of an object of the scope. It may be kept but not changed.
	Object T
}

// ConnectResponse is the client of a scope.
type ConnectResponse[C any] struct {
	// Client is passed to the driver in requests. It must be safe for concurrent use.
	Client C
	// Endpoint names what the client talks to; see [Options.Endpoint]. It is required, because
	// the scope of an object can change: its resource is then not looked for at another
	// endpoint. Scopes through which the same resources are reached have the same endpoint.
	Endpoint string
}

// connecting calls Connect of a connector, for an object of a scope.
func connecting[T client.Object, C any](by Connector[T, C], scope string, obj T) func(context.Context) (attached[C], error) {
	return func(ctx context.Context) (attached[C], error) {
		endpoint := ""
		a, err := live(ctx, func(ctx context.Context) (C, error) {
			response, err := by.Connect(ctx, ConnectRequest[T]{Scope: scope, Object: obj})
			endpoint = response.Endpoint
			return response.Client, err
		})
		if err != nil {
			return a, err
		}
		if err := fitConnected(endpoint); err != nil {
			a.close()
			return attached[C]{}, err
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

// scopeOf settles which client an object needs. lend returns the object for the author.
func (e *engine[T, C, O]) scopeOf(ctx context.Context, who subject, lend func() T) (*shared[C], error) {
	if e.options.Connector == nil {
		return e.clients.of(who.key, ""), nil
	}
	obj := lend()
	name, err := pure(ctx, &e.left, who, "Scope", func() (string, error) { return e.options.Connector.Scope(obj) })
	if err != nil {
		return nil, err
	}
	return e.clients.of(who.key, name), nil
}

// clientOf returns the client of a scope. The caller releases it.
func (e *engine[T, C, O]) clientOf(ctx context.Context, s *shared[C], lend func() T) (*connected[C], error) {
	if e.options.Connector == nil {
		return s.connection.get(ctx, e.callDeadline())
	}
	return s.connection.getBy(ctx, e.callDeadline(), connecting(e.options.Connector, s.name, lend()))
}

// findScope settles which client the object needs. An error is one of connecting.
func (p *pass[T, C, O]) findScope(ctx context.Context) {
	if p.hangs != nil && p.e.options.Connector != nil { // it cannot be asked for, nor anything be called
		return
	}
	var err error
	p.shared, err = p.e.scopeOf(ctx, subjectOf(p.obj), p.lend)
	if isUnreturned(err) {
		p.hangs = err
	} else if err != nil {
		crash, _ := errors.AsType[*guard.PanicError](err)
		p.logPanic(crash)
		p.connect = toldOnce(err)
	}
}

// endpointOf is what an object that is new is pinned to; empty if that is not known yet, so that
// it is pinned before the create.
func (e *engine[T, C, O]) endpointOf(ctx context.Context, obj T) string {
	lend := func() T { return copyOf(obj) }
	s, err := e.scopeOf(ctx, subjectOf(obj), lend)
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

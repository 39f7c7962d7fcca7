package engine

import (
	"context"
	"errors"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

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
	name, err := pure(&e.left, who, "Scope", func() (string, error) { return e.options.Connector.Scope(obj) })
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

// findScope determines which client the object needs. An error counts as one of connecting.
func (p *pass) findScope() {
	if p.hangs != nil && p.e.options.Connector != nil { // the driver cannot be asked for the scope, nor can anything be called
		return
	}
	var err error
	p.shared, err = p.e.scopeOf(subjectOf(p.obj), p.lend)
	if isUnreturned(err) {
		p.hangs = err
	} else if err != nil {
		crash, _ := errors.AsType[*guard.PanicError](err)
		p.logPanic(crash)
		p.connect = toldOnce(err)
	}
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

package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// the scope of an object can change: its resource is then not searched for at another
	// endpoint. Scopes through which the same resources are reached have the same endpoint.
	Endpoint string
}

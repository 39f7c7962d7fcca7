package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Connector creates the clients of objects that do not all use the same one, because their specs
// name different accounts, regions or credentials. The objects of a scope share a client.
// Throttling and outages in one scope do not affect the others. A Connector that logs in with what is in Secrets is an
// [Authenticator]; [Config] makes one for objects that name another object with the credentials.
type Connector[T client.Object, C any] interface {
	// Scope returns the scope of obj. It is pure. If it returns an error, the external API is not called
	// for the object, and its status shows the error, which should say what to do, as in `spec.account
	// is not set; set it to "a" or "b"`. Objects that are being deleted need their scope, too.
	Scope(obj T) (string, error)

	// Connect creates the client of a scope when an object first needs it, and again when the API
	// refuses the client's credentials; see [Options.Connect]. Two scopes must not share a
	// client: when no object uses a scope any more, its context is canceled and its client is closed if
	// it implements [io.Closer].
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
	// Endpoint names what the client talks to; see [Options.Endpoint]. It is required, because the
	// scope of an object can change, and its resource must not be searched for at another endpoint.
	// Scopes in which the same resources are reached have the same endpoint.
	Endpoint string
}

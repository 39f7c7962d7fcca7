package external

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Config makes a [Connector] for objects that name another object, of kind P, which says where the external API is and how
// to log in. It corresponds to the ProviderConfig of Crossplane. All objects that name the same P share a client.
//
// A P has a finalizer as long as an object names it. A P that is deleted therefore stays until the last of these
// objects is gone, so that their resources can be deleted. Each event of the P says which objects it waits for.
//
// If several installations of an operator watch different namespaces and share a cluster-scoped P, it stays only as
// long as the objects of one of them name it.
//
// New clients are made when the spec of the P, or a value to which its Credentials refer, has changed.
type Config[T Object, P client.Object, C any] struct {
	// Of returns the name of the P that obj uses. An empty namespace means that of obj; it is ignored if P is
	// cluster-scoped. Of is pure. An error is shown in the status of obj, and the API is not called. Required.
	Of func(obj T) (types.NamespacedName, error)

	// Credentials returns references in config to the Secrets and ConfigMaps that Connect needs, as in
	// [Authenticator]. Nil means that there are none.
	Credentials func(config P) []api.Reference

	// SecretNamespace is the namespace of these Secrets and ConfigMaps if P is cluster-scoped. Choose one that users
	// of T cannot write to, for example that of the operator. It has no meaning if P is namespaced.
	SecretNamespace string

	// Connect creates the client for the objects that name config, which is a copy whose Credentials are loaded. What
	// [Connector] says of Connect applies. Required.
	Connect func(ctx context.Context, config P) (ConnectResponse[C], error)
}

// Authenticator is a [Connector] whose clients log in with values from Secrets or ConfigMaps. They are in the namespace
// of the object.
//
// Objects of a namespace whose references are the same and whose Scope is the same share a client. When a value
// changes, a new client is made and the objects are compared again. While a Secret or one of its keys is missing,
// condition Failed says so and the external API is not called. A resource whose object is being deleted is still
// deleted by the client that there is, until the operator restarts.
//
// The operator watches the metadata of Secrets. Values are read when a client is made, are passed to Connect, and are
// removed from the errors of the driver.
type Authenticator[T client.Object] interface {
	// Credentials returns pointers to fields of obj that refer to what Connect needs. Connect gets a copy of obj in
	// which they are loaded. Credentials is pure. It is also called with an empty object, to find out whether
	// Secrets or ConfigMaps have to be watched. Nil pointers and references without a name are ignored.
	Credentials(obj T) []api.Reference
}

// Connector returns the connector for [Options.Connector]. It panics if Of or Connect is nil.
func (c Config[T, P, C]) Connector() Connector[T, C] {
	if c.Of == nil || c.Connect == nil {
		panic("external: Config needs Of, which names the object that says how to connect, and Connect, which makes the client from it")
	}
	return configured[T, P, C]{c}
}

// configured is the [Connector] of a [Config].
type configured[T Object, P client.Object, C any] struct{ config Config[T, P, C] }

// Scope implements [Connector].
func (c configured[T, P, C]) Scope(obj T) (string, error) {
	key, err := c.config.Of(obj)
	return key.String(), err
}

// Connect implements [Connector]. The engine makes clients from configs instead.
func (configured[T, P, C]) Connect(context.Context, ConnectRequest[T]) (ConnectResponse[C], error) {
	panic("external: clients are made from a Config")
}

// untyped is the connector as the engine has it.
func (c configured[T, P, C]) untyped() *engine.Connector {
	empty := newOf[P]()
	u := &engine.Connector{
		Config: &engine.Config{
			To: empty,
			Of: func(obj engine.Object) (types.NamespacedName, error) { return c.config.Of(as[T](obj)) },
		},
		SecretNamespace: c.config.SecretNamespace,
		Connect: func(ctx context.Context, _ string, from client.Object) (any, string, error) {
			a, err := c.config.Connect(ctx, as[P](from))
			return a.Client, a.Endpoint, err
		},
	}
	if c.config.Credentials != nil {
		u.Credentials = func(from client.Object) []api.Reference { return c.config.Credentials(as[P](from)) }
	}
	return u
}

// untypedConnector is a connector as the engine has it.
func untypedConnector[T Object, C any](by Connector[T, C]) *engine.Connector {
	if c, ok := by.(interface{ untyped() *engine.Connector }); ok {
		return c.untyped()
	}
	u := &engine.Connector{
		Scope: func(obj engine.Object) (string, error) { return by.Scope(as[T](obj)) },
		Connect: func(ctx context.Context, scope string, from client.Object) (any, string, error) {
			a, err := by.Connect(ctx, ConnectRequest[T]{Scope: scope, Object: as[T](from)})
			return a.Client, a.Endpoint, err
		},
	}
	if a, ok := by.(Authenticator[T]); ok {
		u.Credentials = func(from client.Object) []api.Reference { return a.Credentials(as[T](from)) }
	}
	return u
}

func newOf[V client.Object]() V { return as[V](reflect.New(reflect.TypeFor[V]().Elem()).Interface()) }

// logins returns what wakes objects when what their clients are made from changes, and the permissions for that.
func logins[T Object](e *engine.Engine) (sources []trigger.Source[T], needs []loop.Need) {
	for _, w := range e.Logins() {
		sources = append(sources, trigger.Reference[T]{
			To: w.To, Names: func(obj T) []types.NamespacedName { return w.Names(obj) }, Keep: w.Keep, Then: w.Then,
		})
	}
	return sources, e.LoginNeeds()
}

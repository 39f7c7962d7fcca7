package external

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/loop"
)

// Object is a custom resource that represents one external resource. Its status embeds
// [api.ExternalStatus].
type Object interface {
	client.Object
	api.ExternalObject
}

// Options configures the controller of one kind. Connect or Connector is required. The zero values
// of all other fields suit most APIs.
type Options[T Object, C any] struct {
	// Connect creates the client of the external API. All objects of the kind share it, so it must be
	// safe for concurrent use. If Connect fails, the error is shown in the status of the objects and
	// Connect is called again later.
	//
	// The lifetime of ctx is that of the client, so the client may keep it, for example to renew
	// tokens. It is canceled earlier only if Connect takes longer than CallDeadline.
	//
	// If the API refuses the client's credentials (HTTP status 401 or 407, or nothing but errors of
	// [ClassDenied]), Connect is called for a new client: at once, then after 1 s, growing to 1 min.
	// The old client is closed if it implements [io.Closer] and its context is canceled, both once
	// no call uses it.
	Connect func(ctx context.Context) (C, error)

	// Connector creates clients for objects that do not all use the same one. It replaces Connect
	// and Endpoint; see also [Config.Connector]. Nil means that all objects share the client returned by Connect.
	Connector Connector[T, C]

	// Endpoint names what a client talks to, for example an account and its region, without
	// credentials. The name must be the same whenever the same resources are reached. It is called
	// once per client. The name is pinned in the record of each resource: an operator that talks to
	// another endpoint leaves the resource alone and does not consider it deleted. Nil means that
	// endpoints are not distinguished.
	Endpoint func(ctx context.Context, client C) (string, error)

	// DriftInterval is how often a resource that matches the spec is compared again, give or take
	// 10 %. Zero means 10 minutes. A negative value means only after events. Annotation
	// trimtab.dev/interval overrides it for one object.
	DriftInterval time.Duration

	// CallDeadline is the time limit of one call of the external API. Zero means 30 s. A call that
	// has not returned 2 s after its deadline is abandoned: the worker continues with other objects,
	// and this object is not called again until that call returns.
	CallDeadline time.Duration

	// OperationDeadline is how long an [Operation] may take before it is canceled, if the driver is a [Canceler],
	// and the object fails with reason Timeout. It is asked about until it ends. Zero means 1 h, a negative value no limit.
	// It is also how long a create whose answer was lost may go on unseen, unless CreateGrace is set.
	OperationDeadline time.Duration

	// CreateGrace is how long the API may fail to show a resource after its creation. During that
	// time, absence proves nothing: nothing is created again (but see UniqueNames) and no finalizer
	// is removed. The API may also show a resource for that long after a dependency took it along,
	// so an observation made during that time is repeated.
	//
	// Zero means 10 s, but see OperationDeadline. A negative value means that reads are never behind writes. Then what the API
	// returned less than 10 s ago with an answer (and less than CallDeadline ago) is not read again
	// before an update or a deletion that the user asks for.
	CreateGrace time.Duration

	// UniqueNames means that a second create with the same name has no effect: the API refuses it or
	// returns the existing resource. A create whose answer was lost is then repeated at once instead
	// of after CreateGrace.
	UniqueNames bool

	// AssignedIDs means that the API assigns the ids of resources: Create returns one in
	// [CreateResponse.ID], and all other requests have it. It is recorded before anything else happens. If the
	// operator is killed before that, or the answer is lost, the resource is found again by
	//
	//   - its token, if Tokens is set: the create is repeated, and returns the resource of the first one;
	//   - its mark, if the driver is a [Finder], and neither MarkLater nor Unmarked is set;
	//   - a person otherwise: nothing more is created, and the status says what to do (reason CreateUnknown).
	//
	// A name that [Namer] returns is the one to create the resource with. It need not be unique, and may change.
	// An existing resource is not adopted, because nothing names it.
	AssignedIDs bool

	// Tokens means that the API creates nothing if a create has the same [CreateRequest.Token] as an earlier
	// one, however long ago, and returns the resource of that one.
	//
	// Do not send the token as header Idempotency-Key to an API that ignores it: net/http repeats a request with that
	// header if the connection breaks.
	Tokens bool

	// MarkLater means that Create cannot set the ownership mark because the API needs a second call
	// for it. The driver must be a [Marker]; its Mark is called after Create until an observation
	// shows the mark. A crash between the calls loses nothing. It costs two more writes per object:
	// one because an existing resource must be detected before the first create, one to record that
	// the mark was seen.
	MarkLater bool

	// Unmarked means that the API cannot store ownership marks. It costs one more write per object,
	// because an existing resource must be detected before the first create.
	Unmarked bool

	// LastApplied keeps what the resource was last given by Create or Update in annotation
	// trimtab.dev/last-applied-spec, for fields that the API does not show; see [WriteOnly]. Digests stand for
	// what is in a field named like a secret, such as password or token, and for long values. It costs a write of the object for each create and two for each update.
	LastApplied bool

	// Limits restricts what annotations on objects may ask for.
	Limits Limits

	// DependencyKinds holds an empty object of each kind that DependsOn may return in addition to the
	// kinds that it returns for an empty object.
	DependencyKinds []client.Object

	// Loop configures the loop that runs the controller. MaxInterval is filled in if it is zero, and
	// Sources, Needs and Problem are added to.
	Loop loop.Options[T]
}

// check panics unless it is clear where clients come from, and what annotations may ask for.
func (o Options[T, C]) check() {
	if err := engine.Limits(o.Limits).Check(); err != nil {
		panic("external: Options.Limits: " + err.Error())
	}
	switch {
	case o.Tokens && !o.AssignedIDs:
		panic("external: Options.Tokens is for Options.AssignedIDs; set both, or UniqueNames for an API that takes names")
	case o.Connect == nil && o.Connector == nil:
		panic("external: New needs Options.Connect; return the client that Observe, Create and Delete are to get. " +
			"Objects that do not all use the same client need Options.Connector instead")
	case o.Connect != nil && o.Connector != nil:
		panic("external: Options.Connect and Options.Connector exclude each other; leave out the one that New is not to use")
	case o.Endpoint != nil && o.Connector != nil:
		panic("external: Options.Endpoint is for Options.Connect; return ConnectResponse.Endpoint instead")
	}
}

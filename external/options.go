package external

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/engine"
	"github.com/trimtab-dev/trimtab/loop"
)

// Object is a custom resource that stands for one thing outside the cluster: its status
// embeds [api.ExternalStatus].
type Object interface {
	client.Object
	api.ExternalObject
}

// Options tune the controller of one kind. Connect or Connector is required; the rest is right
// for most when zero.
type Options[T Object, C any] struct {
	// Connect makes the client of the external API. All objects of the kind share the
	// client, which must be safe for concurrent use. An error is shown in the objects'
	// status and tried again. ctx lives as long as the client, so that the client may keep
	// it, for example to renew tokens; it ends earlier only if Connect takes longer than
	// CallDeadline. A client whose credentials the API refuses (a status 401 or 407, or only
	// errors of [ClassDenied]) is replaced by what Connect returns then, at once and after
	// that every 1 s, growing to 1 min. A client that was replaced is closed if it is an
	// [io.Closer], once no call uses it, and its context ends.
	Connect func(ctx context.Context) (C, error)

	// Connector makes the clients of objects that do not all use the same one. It takes the
	// place of Connect and Endpoint. Nil means that all objects share the client of Connect.
	Connector Connector[T, C]

	// Endpoint tells what a client talks to: a name that is the same whenever the same
	// things are reached, for example an account with its region, without credentials. It is
	// asked once for each client. What it says is pinned in the record of each thing, and an operator that talks
	// to something else does not touch the thing, nor takes it for gone. Nil means that
	// endpoints are not told apart.
	Endpoint func(ctx context.Context, client C) (string, error)

	// DriftInterval is how often a thing that is in sync is compared again, give or take a
	// tenth. Zero means 10 minutes; less than zero means only on events.
	DriftInterval time.Duration

	// CallDeadline bounds one call of the external API. Zero means 30 s. A call that has
	// not returned 2 s after that is left behind: the worker goes on with other objects, and
	// this one is not called again before that call returns.
	CallDeadline time.Duration

	// CreateGrace is how long after a create the API may still answer that the thing does
	// not exist. Within it absence proves nothing: nothing is created again, but for
	// UniqueNames, and no finalizer goes. The API may show for as long what went with a
	// dependency, so a look within that time is repeated. Zero means 10 s; less than zero
	// means that reads are never behind writes: what the API returned with an answer less than
	// 10 s ago (and less than CallDeadline) is then not read again before an update or a deletion
	// that the user asks for.
	CreateGrace time.Duration

	// UniqueNames says that a second create of a name makes no second thing and changes
	// nothing: the API refuses it, or answers with the thing that is there. A create whose
	// answer was lost is then repeated at once instead of after the grace.
	UniqueNames bool

	// MarkLater says that Create cannot put the ownership mark on the thing, because that takes
	// a second call of the API: Create only makes it, and the driver's Mark is called until a
	// look shows the mark. A crash in between loses nothing. It needs a driver that is a
	// [Marker]. What is there before the first create is recognised by looking first, and that
	// the mark was seen is recorded, at the price of two more writes for each object.
	MarkLater bool

	// Unmarked says that the API cannot hold ownership marks. What is there before the
	// first create is then recognised by looking first, at the price of one more write for
	// each object.
	Unmarked bool

	// Limits bound what annotations on objects may ask for.
	Limits Limits

	// DependencyKinds are empty objects of the kinds that the driver's DependsOn may name
	// besides those that it names for an empty object.
	DependencyKinds []client.Object

	// Loop tunes the loop below. MaxInterval and Sources are filled in.
	Loop loop.Options[T]
}

// check panics unless it is clear where clients come from, and what annotations may ask for.
func (o Options[T, C]) check() {
	if err := engine.Limits(o.Limits).Check(); err != nil {
		panic("external: Options.Limits: " + err.Error())
	}
	switch {
	case o.Connect == nil && o.Connector == nil:
		panic("external: New needs Options.Connect; return the client that Observe, Create and Delete are to get. " +
			"Objects that do not all use the same client need Options.Connector instead")
	case o.Connect != nil && o.Connector != nil:
		panic("external: Options.Connect and Options.Connector exclude each other; leave out the one that New is not to use")
	case o.Endpoint != nil && o.Connector != nil:
		panic("external: Options.Endpoint is for Options.Connect; return ConnectResponse.Endpoint instead")
	}
}

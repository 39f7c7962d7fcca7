package engine

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/change"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/loop"
)

// Object is a custom resource that stands for one external resource.
type Object interface {
	client.Object
	api.ExternalObject
}

// Driver is an author's driver without its type parameters. Functions that are nil are what it
// cannot do.
type Driver struct {
	// Type is the author's type, for messages. Kind is the kind of the objects, and New makes an
	// empty one.
	Type, Kind string
	New        func() Object

	// Observe, Compare, Create and Delete are required.
	Observe func(context.Context, Request) (Observation, error)
	// Compare's have is nil to learn all that the spec asks for.
	Compare func(obj Object, have any) change.List
	Create  func(context.Context, Request) (Response, error)
	Delete  func(context.Context, Request) (Response, error)

	Update       func(context.Context, Request) (Response, error)
	Mark         func(context.Context, Request) error
	Unmark       func(context.Context, Request) error
	ExternalName func(Object) (string, error)
	Reflect      func(obj Object, have any)
	DependsOn    func(Object) []Dependency

	Errors Errors
}

// Errors tells what errors mean. The zero value leaves all to the default rules.
type Errors struct {
	// Declared returns what the maker of an error said of it, and whether there was one.
	Declared func(error) (class decide.Class, after time.Duration, said bool)
	// Classify is the driver's own word.
	Classify func(error) decide.Class
}

// Request is what a call of the external API is about. Mark is given to Create and Mark; Have and
// Changes to Update.
type Request struct {
	Client      any
	Object      Object
	ID          string
	Incarnation int64
	Mark        map[string]string
	Have        any
	Changes     change.List
}

// Response is what the API answered to a change that it accepted.
type Response struct {
	// ID is the identity that the API assigned; empty if it did not.
	ID string
	// Observed is the state that the API returned; nil if it did not.
	Observed *Observation
	// Gone: what was to be deleted does not exist any more.
	Gone bool
}

// Observation is what one read of an external resource showed.
type Observation struct {
	Phase                     decide.Phase
	Have                      any
	Mark                      map[string]string
	External, Reason, Message string
	Recoverable               bool
	PollAfter                 time.Duration
}

// compared reports whether the resource is complete enough to be compared.
func (o Observation) compared() bool {
	return o.Phase == decide.PhaseAvailable || o.Phase == decide.PhaseDegraded || o.Phase == decide.PhaseFailed
}

// missing is what an absent resource is observed as.
func missing() Observation { return Observation{Phase: decide.PhaseMissing} }

// Dependency is an object that must be ready first.
type Dependency struct {
	Role            string
	To              client.Object
	Namespace, Name string
	Ready           func(to client.Object) (ready bool, why string)
}

// Options are those of a kind, with the meaning that package external gives them.
type Options struct {
	// Connect and Endpoint make the one client that all objects share.
	Connect  func(context.Context) (any, error)
	Endpoint func(ctx context.Context, client any) (string, error)
	// Connector makes the clients of objects that use different ones; nil if all share one.
	Connector *Connector

	DriftInterval, CallDeadline, CreateGrace time.Duration
	UniqueNames, MarkLater, Unmarked         bool
	Limits                                   Limits
	DependencyKinds                          []client.Object
}

// Connector makes the clients of objects that do not all use the same one.
type Connector struct {
	Scope   func(Object) (string, error)
	Connect func(ctx context.Context, scope string, obj Object) (client any, endpoint string, err error)
}

// Run is one pass over one object, as package loop has it.
type Run struct {
	// Object may be replaced by another one of the same type.
	Object   Object
	Client   client.Client
	Live     client.Reader
	Log      logr.Logger
	Terms    loop.Terms
	Retry    loop.RetryInfo
	Vanished bool

	Pass
}

// Pass is what a pass reports to, and asks of, package loop.
type Pass interface {
	SetState(state, reason, message string)
	Report(report conditions.Report)
	Event(kind, reason, note string)
	Persist(ctx context.Context) error
	Sharing(ctx context.Context, key string) ([]Object, error)
}

// DependencyKind is a kind of objects that those of a driver may need.
type DependencyKind struct {
	// To is an empty object of the kind.
	To client.Object
	// Names are the objects of the kind that obj needs. It panics if the driver does not say.
	Names func(obj Object) []types.NamespacedName
	// Changed reports whether an update of an object of the kind can matter.
	Changed func(before, after client.Object) bool
}

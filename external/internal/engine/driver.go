package engine

import (
	"context"
	"reflect"
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

// Object is a custom resource that represents one external resource.
type Object interface {
	client.Object
	api.ExternalObject
}

// Driver is a driver without its type parameters. A nil function is something that the driver
// cannot do.
type Driver struct {
	// Type is the driver's Go type, for messages. Kind is the kind of the objects, and New makes
	// an empty one.
	Type, Kind string
	New        func() Object

	// Observe, Compare, Create and Delete are required.
	Observe func(context.Context, Request) (Observation, error)
	// Compare's have is nil to learn everything that the spec asks for.
	Compare func(obj Object, have any) change.List
	Create  func(context.Context, Request) (Response, error)
	Delete  func(context.Context, Request) (Response, error)

	Update       func(context.Context, Request) (Response, error)
	Mark         func(context.Context, Request) error
	Unmark       func(context.Context, Request) error
	ExternalName func(Object) (string, error)
	Reflect      func(obj Object, have any)
	LateInit     func(obj Object, have any)
	DependsOn    func(Object) []Dependency
	Connection   func(Object) Connection
	Find         func(context.Context, Request) ([]Found, error)
	// Finish gets a client of the cluster.
	Finish func(ctx context.Context, cluster client.Client, obj Object, have any) error
	Poll   func(context.Context, Request) (Polled, error)
	Cancel func(context.Context, Request) error

	Errors Errors
}

// Named is a driver that another package made of its author's type.
type Named interface {
	// DriverType returns that type.
	DriverType() string
}

// Errors classifies errors. The zero value leaves all of them to the default rules.
type Errors struct {
	// Declared returns the class that the error itself carries, and whether it carries one.
	Declared func(error) (class decide.Class, after time.Duration, said bool)
	// Classify is the driver's own classification.
	Classify func(error) decide.Class
}

// Request is the input of a call of the external API. Mark is set for Create, Mark and Find; Have and
// Changes for Update; Passwords for Create and Update. Key is the idempotency token
// for Create, and the id of the operation for Poll and Cancel.
type Request struct {
	Client      any
	Object      Object
	ID          string
	Incarnation int64
	Mark        map[string]string
	Have        any
	Changes     change.List
	Passwords   map[string]string
	Key         string
	// Dependencies are those that exist, by role.
	Dependencies map[string]client.Object
}

// Found is a resource that was found by its mark.
type Found struct {
	ID   string
	Mark map[string]string
}

// Response is the API's answer to a change that it accepted.
type Response struct {
	// ID is the identity that the API assigned; empty if it did not.
	ID string
	// Observed is the state that the API returned; nil if it did not.
	Observed *Observation
	// Gone reports whether the deleted resource no longer exists.
	Gone bool
	// Details are connection details that only this answer has.
	Details map[string][]byte
	// Operation is what goes on after the answer.
	Operation Operation
}

// Observation is what one read of an external resource showed.
type Observation struct {
	Phase                     decide.Phase
	Have                      any
	Mark                      map[string]string
	External, Reason, Message string
	Recoverable               bool
	PollAfter                 time.Duration
	Details                   map[string][]byte
}

// compared reports whether the resource is complete enough to be compared.
func (o Observation) compared() bool {
	return o.Phase == decide.PhaseAvailable || o.Phase == decide.PhaseDegraded || o.Phase == decide.PhaseFailed
}

// shows reports whether the API shows a resource that it is working on.
func (o Observation) shows() bool {
	return (o.Phase == decide.PhaseInProgress || o.Phase == decide.PhaseDeleting) && o.Have != nil && !reflect.ValueOf(o.Have).IsZero()
}

// missing is the observation of an absent resource.
func missing() Observation { return Observation{Phase: decide.PhaseMissing} }

// Dependency is an object that must be ready first.
type Dependency struct {
	Role            string
	To              client.Object
	Namespace, Name string
	Owner, Current  bool
	Ready           func(to client.Object) (ready bool, why string)
}

// Options are the options of a kind, with the meaning that package external gives them.
type Options struct {
	// Connect and Endpoint make the one client that all objects share.
	Connect  func(context.Context) (any, error)
	Endpoint func(ctx context.Context, client any) (string, error)
	// Connector makes the clients of objects that use different ones; nil if all share one.
	Connector *Connector

	DriftInterval, CallDeadline, CreateGrace time.Duration
	OperationDeadline                        time.Duration
	UniqueNames, MarkLater, Unmarked         bool
	AssignedIDs, Tokens                      bool
	LastApplied                              bool
	Limits                                   Limits
	DependencyKinds                          []client.Object
}

// Run is a [loop.Run] without its type parameter.
type Run interface {
	runObject
	runCluster
	runReport

	Terms() loop.Terms
	Retry() loop.RetryInfo
}

// runObject is the object of a pass.
type runObject interface {
	runWrites

	// Object returns the private copy that the pass works on, and SetObject replaces it by another one of
	// the same type.
	Object() Object
	SetObject(obj Object)
	// Certain makes sure that the object is no old copy.
	Certain(ctx context.Context) error
	Vanished() bool
}

// runWrites are writes of the object within a pass.
type runWrites interface {
	// Persist makes the annotations of the object durable.
	Persist(ctx context.Context) error
	// CompleteSpec adds fields to the spec, with the annotations of the object.
	CompleteSpec(ctx context.Context, fields map[string]any) error
}

// runCluster is how a pass reads the cluster.
type runCluster interface {
	Client() client.Client
	Live() client.Reader
	Sharing(ctx context.Context, key string) ([]Object, error)
}

// runReport is where a pass reports what happens.
type runReport interface {
	SetState(state, reason, message string)
	Report(report conditions.Report)
	Event(kind, reason, note string)
	Log() logr.Logger
}

// DependencyKind is a kind of objects that a driver's objects may need.
type DependencyKind struct {
	// To is an empty object of the kind.
	To client.Object
	// Names returns the objects of the kind that obj needs. It panics if the driver does not say.
	Names func(obj Object) []types.NamespacedName
	// Changed reports whether an update of an object of the kind can matter.
	Changed func(before, after client.Object) bool
}

package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Driver is all that you must write for a kind of external resource. T is the custom
// resource, C the client of the external API, O the external resource exactly as that API
// returns it. Methods take a request and return a response, which may get more fields.
// Every method may be called again after any crash.
type Driver[T client.Object, C, O any] interface {
	// Observe reads the external resource. It changes nothing. A resource that does not
	// exist is [Missing], not an error.
	Observe(ctx context.Context, r ObserveRequest[T, C]) (Observation[O], error)

	// Compare returns how the external resource differs from the spec. It is pure: no I/O, no
	// clock, no randomness. What the spec leaves unset is not managed and not compared. It is
	// also called with the zero O, to learn what the spec asks for; a panic there is harmless.
	Compare(r CompareRequest[T, O]) Changes

	// Create starts creation under r.ID, with r.Mark if the API can hold it. Once the API has
	// accepted it, nothing in here may fail: a second call to the API belongs into Mark, with
	// [Options.MarkLater], or into Update.
	Create(ctx context.Context, r CreateRequest[T, C]) (CreateResponse[O], error)

	// Delete starts deletion. A resource that does not exist is success.
	Delete(ctx context.Context, r DeleteRequest[T, C]) (DeleteResponse, error)
}

// Updater is a [Driver] of external resources that can be changed in place. Without it a
// change with effect [InPlace] counts as [Unsupported].
type Updater[T client.Object, C, O any] interface {
	// Update changes the external resource to what the spec asks for.
	Update(ctx context.Context, r UpdateRequest[T, C, O]) (UpdateResponse[O], error)
}

// Marker is a [Driver] that can put the ownership mark on an external resource that exists:
// one that was there before its object, or whose create cannot carry the mark. Without it
// only the object knows that such a resource is its own, and nobody else can see it.
type Marker[T client.Object, C any] interface {
	// Mark puts r.Mark on the external resource, in place of a mark that it may bear, and
	// changes nothing else. It is safe to repeat. A resource that does not exist is an error.
	Mark(ctx context.Context, r MarkRequest[T, C]) (MarkResponse, error)
}

// Unmarker is a [Driver] that can take the ownership mark off an external resource. It is
// called when an object is deleted and its resource is to stay ("orphan"); without it the
// mark stays too, and whoever takes the resource over removes it.
type Unmarker[T client.Object, C any] interface {
	// Unmark removes the mark and changes nothing else. A resource that does not exist is
	// success.
	Unmark(ctx context.Context, r UnmarkRequest[T, C]) (UnmarkResponse, error)
}

// Reflector is a [Driver] that shows in the object's status what it observed.
type Reflector[T client.Object, O any] interface {
	// Reflect writes the status of r.Object, nothing else. It is pure, and is called after each
	// observation of an external resource that is ours. If it is gone or not ours, the
	// status fields of the kind are emptied.
	Reflect(r ReflectRequest[T, O])
}

// Namer is a [Driver] that names external resources itself. Without it they are named
// <kind>-<uid of the object>, lower case, as the Crossplane controller guide has it.
type Namer[T client.Object] interface {
	// ExternalName returns the name, always the same for one object. Pure. An error is final
	// until the spec changes, and the external API is not called.
	ExternalName(obj T) (string, error)
}

// Dependent is a [Driver] whose objects need other objects to be ready first.
type Dependent[T client.Object] interface {
	// DependsOn names them. Pure. It is also called with an empty object when the
	// controller is made, to learn which kinds to watch.
	DependsOn(obj T) []Dependency
}

// Classifier is a [Driver] that knows what its API's errors mean. Errors that it leaves
// [ClassUnknown], and those of drivers without it, are classified by the default rules.
type Classifier interface{ Classify(err error) Class }

// Dependency is an object that must be ready first. One of trimtab's kinds is ready if its
// operator wrote so, another one if its condition Ready says so. Without that condition kstatus
// judges, for which a Deployment is ready when it is rolled out, a Job when it has started, a
// ConfigMap when it is there; an object of a kind that Kubernetes does not know must have a
// status.
type Dependency struct {
	// Role tells dependencies of one object apart, for example "stream".
	Role string
	// To is an empty object of its kind.
	To client.Object
	// Namespace and Name say which; an empty Namespace means the object's own.
	Namespace, Name string
	// Ready tells whether to, which exists and is not being deleted, is ready, and if not why:
	// the end of a sentence about it ("has no key tls.crt"), without secrets. Empty means "is not
	// ready". Pure. Every update of an object of the kind then brings back those that depend on
	// it. Nil means the rules above.
	Ready func(to client.Object) (ready bool, why string)
}

package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Driver is all that the author of an external resource must write. T is the custom
// resource, C the client of the external API, O the external thing exactly as that API
// returns it. Every method may be called again after any crash.
type Driver[T client.Object, C, O any] interface {
	// Observe reads the thing that ref names. It changes nothing. A thing that does not
	// exist is [Missing], not an error.
	Observe(ctx context.Context, c C, obj T, ref Ref) (Observation[O], error)

	// Compare tells how the thing differs from what obj asks for. It is pure: no I/O, no
	// clock, no randomness. What the spec leaves unset is not managed and not compared. It is
	// also called with the zero O, to learn what obj asks for; a panic there is harmless.
	Compare(obj T, have O) Changes

	// Create starts creation under in.Name, carrying in.Mark if the API can hold it. Once
	// the API accepted it, nothing in here may fail: what takes a second call is for Mark and
	// [Options.MarkLater], or for Update.
	Create(ctx context.Context, c C, obj T, in CreateInput) (Result, error)

	// Delete starts deletion. Absent is success.
	Delete(ctx context.Context, c C, obj T, ref Ref) (Result, error)
}

// Unmarker is a [Driver] that can take the ownership mark off a thing. It is called when an
// object is deleted and its thing is to stay ("orphan"); without it the mark stays too, and
// whoever takes the thing over removes it.
type Unmarker[T client.Object, C any] interface {
	// Unmark removes the mark and changes nothing else. Absent is success.
	Unmark(ctx context.Context, c C, obj T, ref Ref) error
}

// Marker is a [Driver] that can put the ownership mark on a thing that exists: one that was
// there before its object, or whose create cannot carry the mark. Without it only the object
// knows that such a thing is its own, and nobody else can see it.
type Marker[T client.Object, C any] interface {
	// Mark puts the ownership mark on the thing, in place of one that it may bear, and
	// changes nothing else. It is safe to repeat. A thing that does not exist is an error.
	Mark(ctx context.Context, c C, obj T, ref Ref, mark Mark) error
}

// Updater is a [Driver] of things that can be changed in place. Without it a change with
// effect [InPlace] counts as [Unsupported].
type Updater[T client.Object, C, O any] interface {
	// Update changes the thing to what obj asks for, given what was observed and how it
	// differs.
	Update(ctx context.Context, c C, obj T, ref Ref, have O, changes Changes) (Result, error)
}

// Namer is a [Driver] that names things itself. Without it a thing is named
// <kind>-<uid of the object>, lower case, as the Crossplane controller guide has it.
type Namer[T client.Object] interface {
	// ExternalName returns the name, always the same for one object. An error is final
	// until the spec changes, and nothing outside is called.
	ExternalName(obj T) (string, error)
}

// Reflector is a [Driver] that shows what it observed in the object's status.
type Reflector[T client.Object, O any] interface {
	// Reflect writes obj's status, nothing else. Pure. It is called after each look at a thing that
	// is ours; of one that is gone or not ours, the kind's own status fields are emptied.
	Reflect(obj T, have O)
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

// Ref names one external thing.
type Ref struct {
	// ID is its identity in its own system, never empty.
	ID string
	// Incarnation counts creations for one object, from 1.
	Incarnation int64
}

// CreateInput is what a creation must use, so that the thing can be found again.
type CreateInput struct {
	// Name is the thing's name: deterministic, durable before Create is called.
	Name string
	// Mark tells whose the thing is. Put it into labels, tags or metadata, and return it
	// in [Observation.Mark].
	Mark Mark
}

// Result is the answer to a mutating call that the API accepted. The zero value says:
// done or under way, look.
type Result struct {
	// ID is the thing's identity if the API assigned another one than CreateInput.Name. Things
	// with such identities are not managed yet: the id is recorded, nothing is created again,
	// status says so, and when the object is deleted the thing is, by this id. Empty means
	// the name.
	ID string
}

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

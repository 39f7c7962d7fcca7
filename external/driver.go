package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Driver manages one kind of external resource. T is the custom resource, C the client of the
// external API, and O the external resource as the API returns it. Methods take a request and
// return a response, so that either can get more fields. Every method may be called again after a
// crash.
type Driver[T client.Object, C, O any] interface {
	// Observe reads the external resource. It changes nothing. A resource that does not
	// exist is [Missing], not an error.
	Observe(ctx context.Context, r ObserveRequest[T, C]) (Observation[O], error)

	// Compare returns how the external resource differs from the spec. It is pure: no I/O, no clock,
	// no randomness. What the spec leaves unset is not managed and not compared. Compare is also
	// called with the zero O, to find out what the spec asks for; a panic is harmless then.
	Compare(r CompareRequest[T, O]) Changes

	// Create creates the resource, or starts to, under r.ID and with r.Mark if the API can store it.
	// Once the API has accepted the resource, Create must not fail: if the API needs a second call,
	// make it in Mark, with [Options.MarkLater], or in Update.
	Create(ctx context.Context, r CreateRequest[T, C]) (CreateResponse[O], error)

	// Delete deletes the resource, or starts to. It succeeds if the resource does not exist.
	Delete(ctx context.Context, r DeleteRequest[T, C]) (DeleteResponse, error)
}

// Updater is a [Driver] that can change external resources in place. Without it, changes with effect
// [InPlace] count as [Unsupported].
type Updater[T client.Object, C, O any] interface {
	// Update changes the external resource to match the spec.
	Update(ctx context.Context, r UpdateRequest[T, C, O]) (UpdateResponse[O], error)
}

// Marker is a [Driver] that can put the ownership mark on an existing resource: one that is adopted,
// or that cannot be created with a mark. Without it, an adopted resource carries no mark, so only
// its object knows that it is managed.
type Marker[T client.Object, C any] interface {
	// Mark puts r.Mark on the external resource, replaces an older mark, and changes nothing else. It
	// may be repeated. It fails if the resource does not exist.
	Mark(ctx context.Context, r MarkRequest[T, C]) (MarkResponse, error)
}

// Unmarker is a [Driver] that can remove the ownership mark. It is called when an object is deleted
// and its resource is kept (deletion policy "orphan"). Without it, the mark stays on the resource. It also
// stays if there is no client to remove it with for a quarter of an hour, for example because the credentials are gone.
type Unmarker[T client.Object, C any] interface {
	// Unmark removes the mark and changes nothing else. It succeeds if the resource does not exist.
	Unmark(ctx context.Context, r UnmarkRequest[T, C]) (UnmarkResponse, error)
}

// Finder is a [Driver] that can search for resources by their ownership mark, by a query for one of its labels or in a
// list of all of them. With [Options.AssignedIDs], it finds resources whose id is not known.
type Finder[T client.Object, C any] interface {
	// Find returns the resources that bear r.Mark. It changes nothing. It must return all of them, and may return
	// those of others, too.
	Find(ctx context.Context, r FindRequest[T, C]) (FindResponse, error)
}

// Reflector is a [Driver] that shows the external resource in the status of the object.
type Reflector[T client.Object, O any] interface {
	// Reflect sets fields in the status of r.Object, and changes nothing else. It is pure. It is called
	// after each observation of a resource that is ours and exists, or that is in [PhaseInProgress] or [PhaseDeleting] and has a Have. If the
	// resource is gone or not ours, the status fields of the kind are cleared.
	Reflect(r ReflectRequest[T, O])
}

// LateInitializer is a [Driver] that completes specs with what the API has chosen. That is done only for objects whose users
// ask for it, by annotation trimtab.dev/late-init, and only for fields that are unset, each once: whoever removes such a
// field again leaves the choice to the API. Whoever applies the spec from elsewhere, such as GitOps tools, should know these
// fields or ignore them.
type LateInitializer[T client.Object, O any] interface {
	// LateInit sets fields in the spec of r.Object that are unset. It changes nothing else, and is pure. It is called after
	// observations of a resource that is ours and matches the spec. A field that is encoded although it is unset, such as an
	// int without omitempty, counts as set.
	LateInit(r LateInitRequest[T, O])
}

// Finisher is a [Driver] that has something left to do in the cluster when its resource matches the spec: create a Job that
// fills a database, or a ConfigMap that others read. It is the only method with a client of the cluster, and
// corresponds to the success handler of Operatify. The permissions that it needs belong to Options.Loop.Needs.
type Finisher[T client.Object, O any] interface {
	// Finish is called in every pass that finds a resource of ours that matches the spec, and must do nothing if nothing is
	// missing. So it runs at least once for each spec, and repairs what somebody has deleted: at the next
	// observation, or at once with a source in Options.Loop.Sources. The object is Ready when it has succeeded. If it
	// fails, the object fails with reason FinishFailed, and it is tried again; [NotReady] is no failure, but means that
	// something that it began goes on. It is not called for objects that are
	// being deleted: what it creates should have an owner reference.
	Finish(ctx context.Context, r FinishRequest[T, O]) (FinishResponse, error)
}

// Namer is a [Driver] that chooses the names of external resources. Without it, a resource is named
// <kind>-<uid of the object> in lower case.
type Namer[T client.Object] interface {
	// ExternalName returns the name. It must always return the same name for the same object. It is
	// pure. An error is shown in the status, and the external API is not called until the spec
	// changes.
	ExternalName(obj T) (string, error)
}

// Dependent is a [Driver] whose objects need other objects to be ready first.
type Dependent[T client.Object] interface {
	// DependsOn returns the dependencies of obj. It is pure. It is also called with an empty object,
	// to find out which kinds to watch.
	DependsOn(obj T) []Dependency
}

// Classifier is a [Driver] that knows what the errors of its API mean. The default rules classify
// errors for which it returns [ClassUnknown].
type Classifier interface{ Classify(err error) Class }

// Dependency is an object that must be ready before the external API is called. By default:
//
//   - An object of a trimtab kind is ready if its condition Ready is true and was written by its
//     operator.
//   - An object of another kind is ready if its condition Ready is true.
//   - If there is no such condition, package health decides. A Deployment must be rolled out, a Job must be
//     complete, a ConfigMap must exist. Nothing waits for the address of an Ingress or a load balancer.
//     Objects of kinds that are not part of Kubernetes must have a status.
type Dependency struct {
	// Role distinguishes the dependencies of one object, for example "stream". Empty means the kind in lower case, followed
	// by a slash and Name if several dependencies of that kind have no role.
	Role string
	// To is an empty object of the kind.
	To client.Object
	// Namespace and Name identify the object. An empty Namespace means that of the dependent object.
	Namespace, Name string
	// Owner makes the object that is depended on an owner of the dependent one. Kubernetes deletes the dependent object, and
	// so its resource, when all its owners are deleted; owners that it had before, such as a former owner, stay owners. The
	// owner must be in the same namespace, or cluster-scoped. At most one dependency may be the owner.
	Owner bool
	// Current requires more of an object of a trimtab kind: that it matches its own current spec, and that nothing about it
	// has failed. Without it, an object whose change is going on, or fails, is ready as long as its resource works. With
	// it, every update of an object of the kind triggers the objects that depend on it.
	Current bool
	// Ready replaces the default rules. It reports whether to, which exists and is not being deleted,
	// is ready. If not, why completes a sentence about it, as in "has no key tls.crt"; it must not
	// contain secrets, and empty means "is not ready". Ready is pure. With it, every update of an
	// object of the kind triggers the objects that depend on it.
	Ready func(to client.Object) (ready bool, why string)
}

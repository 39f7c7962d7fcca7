package external

import "sigs.k8s.io/controller-runtime/pkg/client"

// ObserveRequest asks for the present state of an external resource.
type ObserveRequest[T client.Object, C any] struct {
	// Client is what [Options.Connect] returned, or [Connector.Connect] for the scope of Object.
	Client C
	// Object is a copy of the custom resource. It may be kept but not changed.
	Object T
	// ID identifies the external resource: the name under which it was or will be created, or the
	// identity that the API assigned. It is never empty.
	ID string
	// Incarnation counts the creations for this object, from 1.
	Incarnation int64
	// Dependencies has the objects that [Dependent.DependsOn] returned, by role, as far as they exist: all of them, and all
	// ready, if the resource may be created or changed. They are copies, which may be kept but not changed.
	Dependencies map[string]client.Object
}

// CompareRequest asks how an external resource differs from the spec.
type CompareRequest[T client.Object, O any] struct {
	// Object is a copy of the custom resource, as in [ObserveRequest].
	Object T
	// Have is [Observation.Have], or the zero value to find out everything that the spec asks for.
	Have O
}

// CreateRequest asks to create an external resource.
type CreateRequest[T client.Object, C any] struct {
	// Client, Object and Dependencies are as in [ObserveRequest].
	Client       C
	Object       T
	Dependencies map[string]client.Object
	// ID is the name under which to create the resource. It is deterministic, and recorded durably
	// before Create is called. It is never empty. With [Options.AssignedIDs], it is a name for people.
	ID string
	// Token identifies this creation: it is the same whenever Create is called again for the same incarnation,
	// and different for every other one. It is for APIs that take idempotency keys; see [Options.Tokens]. It has
	// 32 hexadecimal digits.
	Token string
	// Incarnation is the number of this creation for the object, from 1.
	Incarnation int64
	// Mark identifies the owner of the external resource. Store it in labels, tags or metadata, and
	// return it in [Observation.Mark]. It is never empty.
	Mark Mark
	// Passwords are the values of [Connection.Passwords], which are in the Secret by now. The resource
	// must have them.
	Passwords map[string]string
}

// CreateResponse is the answer to a create that the API accepted. The zero value means that
// the external resource has the name of the request, and is created or will be.
type CreateResponse[O any] struct {
	// ID is the id that the API assigned. It is required with [Options.AssignedIDs], unless the Operation will have it, and
	// must be empty or the name otherwise: another id is recorded and the resource is deleted with its object, but the object
	// is not managed (reason UndeclaredID).
	ID string
	// Observed is the external resource as the API returned it in its answer, in the form that
	// Observe returns, including its Mark. It saves a read, unless the mark is missing. Leave it nil if
	// the API returns nothing or only repeats the request.
	Observed *Observation[O]
	// Details are connection details that only this answer has; see [Connection.Once]. They are in the
	// Secret before anything else happens.
	Details map[string][]byte
	// Operation is what the API has begun, if it can be asked about.
	Operation Operation
}

// UpdateRequest asks to change an external resource in place.
type UpdateRequest[T client.Object, C, O any] struct {
	// Client, Object, ID, Incarnation and Dependencies are as in [ObserveRequest].
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
	// Have is the external resource as it was last observed.
	Have O
	// Changes are all differences between Have and the spec, including those that Update must
	// ignore; see [Changes.With] and [Changes.Has]. There is at least one.
	Changes Changes
	// Passwords are the values of [Connection.Passwords]. A change at "connection." and the key says that the
	// resource may have another one. It is empty if the Secret cannot be read; there is no such change then.
	Passwords map[string]string
}

// UpdateResponse is the answer to an update that the API accepted. The zero value means that
// the external resource is changed or will be.
type UpdateResponse[O any] struct {
	// ID is the id that the API assigned if the update replaced the resource by another one; see
	// [CreateResponse.ID]. Empty means that the resource is the same. If the operator is killed before the id is
	// recorded, the new resource is not found.
	ID string
	// Observed and Operation are as in [CreateResponse].
	Observed  *Observation[O]
	Operation Operation
}

// DeleteRequest asks to delete an external resource.
type DeleteRequest[T client.Object, C any] struct {
	// All fields are as in [ObserveRequest].
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
}

// DeleteResponse is the answer to a deletion that the API accepted. The zero value means that
// the external resource is gone or will be.
type DeleteResponse struct {
	// Gone means that the external resource no longer exists and that no read will show it again. It
	// saves the read that would follow. If a read shows it nevertheless, later answers of this kind are
	// checked by a read, and recreating is given up after three of them.
	Gone bool
	// Operation is as in [CreateResponse]. If there is one, Gone has no meaning.
	Operation Operation
}

// MarkRequest asks to put the ownership mark on an external resource.
type MarkRequest[T client.Object, C any] struct {
	// Client, Object, ID, Incarnation and Dependencies are as in [ObserveRequest].
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
	// Mark is the mark that the external resource must have. It is never empty.
	Mark Mark
}

// MarkResponse is the answer to a mark that the API accepted.
type MarkResponse struct{}

// FindRequest asks for the resources that bear an ownership mark.
type FindRequest[T client.Object, C any] struct {
	// Client, Object, Incarnation and Dependencies are as in [ObserveRequest].
	Client       C
	Object       T
	Incarnation  int64
	Dependencies map[string]client.Object
	// Mark is the mark that Create sets.
	Mark Mark
}

// FindResponse has the resources that were found.
type FindResponse struct {
	// Found may have more resources than those that bear the mark: those of others are ignored.
	Found []Found
}

// Found is a resource that was found.
type Found struct {
	// ID is its id, as in [CreateResponse.ID].
	ID string
	// Mark is its ownership mark; see [MarkOf].
	Mark Mark
}

// UnmarkRequest asks to remove the ownership mark from an external resource.
type UnmarkRequest[T client.Object, C any] struct {
	// All fields are as in [ObserveRequest].
	Client       C
	Object       T
	ID           string
	Incarnation  int64
	Dependencies map[string]client.Object
}

// UnmarkResponse is the answer to an unmark that the API accepted.
type UnmarkResponse struct{}

// ReflectRequest asks to show an external resource in the status of its object.
type ReflectRequest[T client.Object, O any] struct {
	// Object is the custom resource whose status is written.
	Object T
	// Have is [Observation.Have].
	Have O
}

// LateInitRequest asks to complete the spec of an object.
type LateInitRequest[T client.Object, O any] struct {
	// Object is a copy of the custom resource. Its spec may be changed.
	Object T
	// Have is [Observation.Have].
	Have O
}

// FinishRequest asks to do what follows from a resource that matches the spec.
type FinishRequest[T client.Object, O any] struct {
	// Cluster reads from the cache of the operator and writes to the API server.
	Cluster client.Client
	// Object is a copy of the custom resource. It must not be written.
	Object T
	// Have is [Observation.Have].
	Have O
}

// FinishResponse is the answer of a driver that has finished.
type FinishResponse struct{}

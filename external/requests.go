package external

import "sigs.k8s.io/controller-runtime/pkg/client"

// ObserveRequest asks for the present state of an external resource.
type ObserveRequest[T client.Object, C any] struct {
	// Client is what [Options.Connect] returned, or [Connector.Connect] for the scope of Object.
	Client C
	// Object is a copy of the custom resource. It may be kept but not changed.
	Object T
	// ID identifies the external resource in its API: the name that it was or would be created
	// under, or the identity that the API assigned. Never empty.
	ID string
	// Incarnation counts the creations for this object, from 1.
	Incarnation int64
}

// CompareRequest asks how an external resource differs from the spec.
type CompareRequest[T client.Object, O any] struct {
	// Object is a copy of the custom resource, as in [ObserveRequest].
	Object T
	// Have is [Observation.Have]; the zero value to learn all that the spec asks for.
	Have O
}

// CreateRequest asks for a new external resource, and says how it is found again.
type CreateRequest[T client.Object, C any] struct {
	// Client and Object are as in [ObserveRequest].
	Client C
	Object T
	// ID is the name to create it under: deterministic, and recorded durably before Create
	// is called. Never empty.
	ID string
	// Incarnation is which creation for this object it is, from 1.
	Incarnation int64
	// Mark says whose the external resource is. Put it into labels, tags or metadata, and
	// return it in [Observation.Mark]. Never empty.
	Mark Mark
}

// CreateResponse is the answer to a create that the API accepted. The zero value means that
// the external resource has the name of the request, and is created or will be.
type CreateResponse[O any] struct {
	// ID is the identity that the API assigned, if it is not [CreateRequest.ID]. Resources
	// with such identities are not managed yet: the ID is recorded, nothing is created again,
	// status says so, and when the object is deleted, the resource with this ID is deleted.
	// Empty means the name of the request.
	ID string
	// Observed is the external resource as the API returned it with its answer, in the form that
	// Observe returns, with its Mark: without the mark, the resource is observed all the same. It
	// saves a read. Leave it nil if the API returns nothing or only echoes the request.
	Observed *Observation[O]
}

// UpdateRequest asks to change an external resource in place.
type UpdateRequest[T client.Object, C, O any] struct {
	// Client, Object, ID and Incarnation are as in [ObserveRequest].
	Client      C
	Object      T
	ID          string
	Incarnation int64
	// Have is the external resource as it was last observed.
	Have O
	// Changes are all differences between Have and the spec, including those that Update must not
	// act on; see [Changes.With] and [Changes.Has]. Never empty.
	Changes Changes
}

// UpdateResponse is the answer to an update that the API accepted. The zero value means that
// the external resource is changed or will be.
type UpdateResponse[O any] struct {
	// ID is the identity that the API assigned if the update made another resource in place of
	// the one that was there; it counts as [CreateResponse.ID] does. Empty means that the
	// resource is the same.
	ID string
	// Observed is as in [CreateResponse].
	Observed *Observation[O]
}

// DeleteRequest asks to delete an external resource.
type DeleteRequest[T client.Object, C any] struct {
	// Client, Object, ID and Incarnation are as in [ObserveRequest].
	Client      C
	Object      T
	ID          string
	Incarnation int64
}

// DeleteResponse is the answer to a deletion that the API accepted. The zero value means that
// the external resource is gone or will be.
type DeleteResponse struct {
	// Gone says that the external resource does not exist any more, and that no read will show
	// it again. It saves the read that would follow. If a read does show it again, later answers
	// of that kind are checked by a read, and after three of them a re-creation is given up.
	Gone bool
}

// MarkRequest asks to put the ownership mark on an external resource.
type MarkRequest[T client.Object, C any] struct {
	// Client, Object, ID and Incarnation are as in [ObserveRequest].
	Client      C
	Object      T
	ID          string
	Incarnation int64
	// Mark is what the external resource must carry. Never empty.
	Mark Mark
}

// MarkResponse is the answer to a mark that the API accepted.
type MarkResponse struct{}

// UnmarkRequest asks to take the ownership mark off an external resource.
type UnmarkRequest[T client.Object, C any] struct {
	// Client, Object, ID and Incarnation are as in [ObserveRequest].
	Client      C
	Object      T
	ID          string
	Incarnation int64
}

// UnmarkResponse is the answer to an unmark that the API accepted.
type UnmarkResponse struct{}

// ReflectRequest asks to show an external resource in the status of its object.
type ReflectRequest[T client.Object, O any] struct {
	// Object is the custom resource whose status to write.
	Object T
	// Have is [Observation.Have].
	Have O
}

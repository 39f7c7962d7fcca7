package verify

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
)

// ResourceManager manages one kind of external resource. T is the custom resource. Every method may be called again after a
// crash.
type ResourceManager[T external.Object] interface {
	// Create creates the resource, or starts to, and does not wait until it can be used.
	Create(ctx context.Context, r ResourceSpec[T]) (ApplyResponse, error)
	// Update changes the resource, or starts to. It is called if Verify has returned [VerifyResultUpdateRequired].
	Update(ctx context.Context, r ResourceSpec[T]) (ApplyResponse, error)
	// Verify says how the resource is. It changes nothing.
	Verify(ctx context.Context, r ResourceSpec[T]) (VerifyResponse, error)
	// Delete deletes the resource, or starts to.
	Delete(ctx context.Context, r ResourceSpec[T]) (DeleteResult, error)
}

// ResourceSpec is what a resource is managed by.
type ResourceSpec[T external.Object] struct {
	// Instance is a copy of the custom resource, with its status. It may be kept but not changed.
	Instance T
	// Dependencies has the objects that the [DefinitionManager] returned, by role, as far as they exist: all of them, and
	// all ready, for Create and Update. The role of the owner is "owner" unless it says otherwise.
	Dependencies map[string]client.Object
	// ID is the name under which the resource was or will be created: what [external.Namer] returns if the ResourceManager
	// is one, and otherwise the kind and the UID of Instance. Two objects with the same ID do not manage the same resource:
	// the second one fails.
	ID string
	// Mark identifies the owner. With [Options.Marked], Create must store it on the resource. It is empty for Update,
	// Verify and Delete.
	Mark external.Mark
}

// Payload decodes the payload that was returned last into v, and reports whether there is one.
func (r ResourceSpec[T]) Payload(v any) (found bool, err error) {
	holder, holds := any(r.Instance).(PayloadHolder)
	if !holds || len(holder.StatusPayload().Raw) == 0 {
		return false, nil
	}
	return true, json.Unmarshal(holder.StatusPayload().Raw, v)
}

// Changed reports whether the field at path, as in "spec.password", may have another value than the resource was last
// given. It is for fields that the API does not show; see [external.WriteOnly].
func (r ResourceSpec[T]) Changed(path string) bool {
	return len(external.WriteOnly(r.Instance, path)) > 0
}

// PayloadHolder is a custom resource whose status has room for a payload:
//
//	type WidgetStatus struct {
//		api.ExternalStatus `json:",inline"`
//		// +optional
//		Payload apiextensionsv1.JSON `json:"payload,omitzero"`
//	}
//
//	func (w *Widget) StatusPayload() *apiextensionsv1.JSON { return &w.Status.Payload }
type PayloadHolder interface {
	// StatusPayload returns the payload in the status for reading and writing. It must not return nil.
	StatusPayload() *apiextensionsv1.JSON
}

// ApplyResponse is the answer of Create and Update.
type ApplyResponse struct {
	Result ApplyResult
	// Payload is as in [VerifyResponse]. If the operator is killed before it is stored, it is lost.
	Payload any
}

// ApplyResult says how far Create or Update came. The zero value is none.
type ApplyResult string

const (
	// ApplyResultAwaitingVerification: it goes on, and Verify will show its end.
	ApplyResultAwaitingVerification ApplyResult = "AwaitingVerification"
	// ApplyResultSucceeded: it is done, and the resource can be used.
	ApplyResultSucceeded ApplyResult = "Succeeded"
	// ApplyResultError: it failed. An error is more informative.
	ApplyResultError ApplyResult = "Error"
)

// VerifyResponse is the answer of Verify.
type VerifyResponse struct {
	Result VerifyResult
	// Payload is any value that can be encoded as JSON, of at most 64 KiB. It is stored in the status and passed to the
	// next calls; see [ResourceSpec.Payload]. It is not interpreted. Nil keeps the one that is stored. The custom
	// resource must be a [PayloadHolder]. It must not contain secrets, and whoever can write the status can change it.
	Payload any
	// Message explains InProgress and Error. It may be empty.
	Message string
	// Changes say what differs if an update or a new resource is required, for users. Their effects have no meaning.
	// Empty means how the spec differs from what the resource was last given.
	Changes external.Changes
	// Mark is the ownership mark on the resource; see [Options.Marked].
	Mark external.Mark
}

// VerifyResult says how a resource is. The zero value is none.
type VerifyResult string

const (
	// VerifyResultMissing: it does not exist.
	VerifyResultMissing VerifyResult = "Missing"
	// VerifyResultRecreateRequired: it differs from the spec, and must be deleted and created again.
	VerifyResultRecreateRequired VerifyResult = "RecreateRequired"
	// VerifyResultUpdateRequired: it differs from the spec, and Update can change that.
	VerifyResultUpdateRequired VerifyResult = "UpdateRequired"
	// VerifyResultInProgress: it is being created or updated.
	VerifyResultInProgress VerifyResult = "InProgress"
	// VerifyResultReady: it matches the spec and can be used.
	VerifyResultReady VerifyResult = "Ready"
	// VerifyResultError: it has failed. It is verified again later.
	VerifyResultError VerifyResult = "Error"
	// VerifyResultDeleting: it is being deleted.
	VerifyResultDeleting VerifyResult = "Deleting"
)

// DeleteResult says how far Delete came. Whatever it is, the object stays until Verify returns Missing. The zero value is none.
type DeleteResult string

const (
	// DeleteResultAlreadyDeleted: the resource did not exist.
	DeleteResultAlreadyDeleted DeleteResult = "AlreadyDeleted"
	// DeleteResultSucceeded: it is deleted.
	DeleteResultSucceeded DeleteResult = "Succeeded"
	// DeleteResultAwaitingVerification: it is being deleted.
	DeleteResultAwaitingVerification DeleteResult = "AwaitingVerification"
	// DeleteResultError: it was not deleted. An error is more informative.
	DeleteResultError DeleteResult = "Error"
)

// ReconcileState is the state in the status of an object.
type ReconcileState string

// The nine states; see the package documentation.
const (
	Pending     ReconcileState = "Pending"
	Creating    ReconcileState = "Creating"
	Updating    ReconcileState = "Updating"
	Verifying   ReconcileState = "Verifying"
	Completing  ReconcileState = "Completing"
	Succeeded   ReconcileState = "Succeeded"
	Recreating  ReconcileState = "Recreating"
	Failed      ReconcileState = "Failed"
	Terminating ReconcileState = "Terminating"
)

// StateOf returns the state of an object, as its status has it.
func StateOf(obj external.Object) ReconcileState { return ReconcileState(obj.TrimtabStatus().State) }

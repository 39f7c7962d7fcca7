package metric

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Other is the value of a label for every word that is none of trimtab's or Kubernetes' own. Authors and admission webhooks may
// make up any, with names of objects in them.
const Other = "Other"

// states are those that the loop, components and external resources show.
var states = []string{
	"Succeeded", "Pending", "Reconciling", "Failed", "Terminating",
	"Processing", "Ready", "DeletionPending", "Deleting", "Error",
	"Creating", "Updating", "Verifying", "Completing", "Recreating",
}

// State returns a state of an object as the value of a label.
func State(state string) string {
	if slices.Contains(states, state) {
		return state
	}
	return Other
}

// Reason returns the reason of the API server for an error as the value of a label.
func Reason(err error) string {
	switch reason := apierrors.ReasonForError(err); reason {
	case metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
		metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
		metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable:
		return string(reason)
	case metav1.StatusReasonUnknown:
	}
	return Other
}

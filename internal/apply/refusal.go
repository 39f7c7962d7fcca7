package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConflictError is the error of an apply that would take fields from others.
type ConflictError struct {
	// Conflicts say which field is whose, one each.
	Conflicts []string
}

// Error says which fields belong to whom.
func (e *ConflictError) Error() string { return strings.Join(e.Conflicts, ", ") }

// conflictIn returns the conflicts over fields that an answer reports, or nil.
func conflictIn(err error) *ConflictError {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	var list []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		whose := strings.TrimPrefix(cause.Message, "conflict with ")
		whose, _, _ = strings.Cut(whose, " using ")
		list = append(list, fmt.Sprintf("%s belongs to field manager %s", strings.TrimPrefix(cause.Field, "."), whose))
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return &ConflictError{Conflicts: slices.Compact(list)}
}

// MissingNamespace reports whether a create was refused because the namespace does not exist.
func MissingNamespace(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Kind == "namespaces" && status.Status().Details.Group == ""
}

// Unserved reports whether a request could not be sent, or was refused, because the API server does not serve
// the kind.
func Unserved(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.Status().Details == nil {
		return meta.IsNoMatchError(err)
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse { // what no resource answered
			return true
		}
	}
	return false
}

// refusedFields are the fields that a refusal names, as paths of names. Those in lists are left out.
func refusedFields(err error) [][]string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return nil
	}
	var all [][]string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && !strings.Contains(cause.Field, "[") {
			all = append(all, strings.Split(cause.Field, "."))
		}
	}
	return all
}

// isUIDRefused reports whether an apply was refused because the object has another uid.
func isUIDRefused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

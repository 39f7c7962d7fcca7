package decide

import (
	"fmt"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
)

// PausedText is [Texts.Paused]. A zero until means that the pause has no end.
func PausedText(p Pause, until time.Time) string {
	text := "changes are paused by annotation " + api.AnnotationPaused
	switch {
	case !until.IsZero():
		return text + " until " + until.UTC().Format(time.RFC3339)
	case p == PauseAll:
		return text + ", deletion too; remove it to continue"
	}
	return text + "; remove it to continue"
}

// InvalidPause is the problem of a value of [api.AnnotationPaused] that is not valid.
func InvalidPause(value string) string {
	return invalid(api.AnnotationPaused, value, `"true", "all", "false" or a time like 2030-01-31T12:00:00Z`, "changes are paused")
}

// InvalidAccess is the problem of a value of [api.AnnotationAccess] that is not valid.
func InvalidAccess(value string) string {
	return invalid(api.AnnotationAccess, value, `letters of "CUD", "none" or "read-only"`, "the external resource is only observed")
}

// InvalidAdoption is the problem of a value of [api.AnnotationAdoption] that is not valid.
func InvalidAdoption(value string) string {
	return invalid(api.AnnotationAdoption, value, `"never", "if-marked", "if-identical", "always" or "from:" with a UID`, "nothing is adopted")
}

// InvalidDeletion is the problem of a value of [api.AnnotationDeletion] that is not valid.
func InvalidDeletion(value string) string {
	return invalid(api.AnnotationDeletion, value, `"delete" or "orphan"`, "the external resource is neither deleted nor kept")
}

// InvalidInterval is the problem of a value of [api.AnnotationInterval] that is not valid.
func InvalidInterval(value string) string {
	return invalid(api.AnnotationInterval, value, `a duration of at least 1 s, such as "90s" or "12h"`, "the interval of the kind applies")
}

// InvalidLateInit is the problem of a value of [api.AnnotationLateInit] that is not valid.
func InvalidLateInit(value string) string {
	return invalid(api.AnnotationLateInit, value, `"true" or "false"`, "the spec is not completed")
}

func invalid(annotation, value, allowed, instead string) string {
	return fmt.Sprintf("annotation %s: %q is not %s; %s until it is corrected", annotation, value, allowed, instead)
}

// AdoptBy says which value of [api.AnnotationAdoption] adopts the resource.
func AdoptBy(value string) string {
	return fmt.Sprintf("set annotation %s to %q to adopt it", api.AnnotationAdoption, value)
}

// Unverified is what a dependency lacks whose condition Ready somebody else wrote. If its operator
// then writes the same value, no cache shows a change, so the dependency has to be polled.
const Unverified = "has a condition Ready that its operator did not write"

// Grant is the way to a missing permission. It names the first obstacle: what the driver author
// allows, what whoever runs the operator allows, or the object's annotation. Author,
// Operator and Annotation are letters of "cud".
type Grant struct {
	// Author is what the driver author allows, Operator what the flag --access-limit allows.
	Author, Operator string
	// Annotation is what the object's annotation allows.
	Annotation string
	// Namespace is the object's, empty for kinds without namespaces.
	Namespace string
}

// to returns the way to the permissions in letters.
func (g Grant) to(letters string) string {
	switch {
	case !contains(g.Author, letters):
		return "; this operator is built without that permission"
	case !contains(g.Operator, letters):
		return "; whoever runs the operator can allow it with " + Flag("access-limit", g.Namespace, union(g.Operator, letters))
	}
	return fmt.Sprintf("; set annotation %s to %q to allow it", api.AnnotationAccess, union(g.Annotation, letters))
}

// Flag returns a flag of the operator as it is set for a namespace, or for all if it is empty.
func Flag(name, namespace, value string) string {
	if namespace == "" {
		return "--" + name + " " + value
	}
	return "--" + name + " " + namespace + "=" + value
}

// contains reports whether all letters are in set.
func contains(set, letters string) bool { return union(set, letters) == union(set, "") }

// union returns the letters of a and b in the order of "cud".
func union(a, b string) string {
	var all strings.Builder
	for _, letter := range "cud" {
		if strings.ContainsRune(a+b, letter) {
			all.WriteRune(letter)
		}
	}
	return all.String()
}

package api

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Condition types. Ready, Reconciling and Stalled follow kstatus; the others are those of
// an external resource and may be true side by side (Failed with any of them).
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"

	ConditionCreating = "Creating"
	ConditionUpdating = "Updating"
	ConditionDeleting = "Deleting"
	ConditionFailed   = "Failed"
	ConditionPaused   = "Paused"

	ConditionDependenciesReady = "DependenciesReady"

	// ConditionPolicyInvalid is true while an annotation that limits the operator cannot
	// be understood; the safest meaning holds then.
	ConditionPolicyInvalid = "PolicyInvalid"
)

// Annotations that people and programs put on an object. A change of one of these wakes
// the loop; other annotations do not.
const (
	// AnnotationPaused stops mutation while observation and reporting go on. "true"
	// pauses until removed, a time (RFC 3339) until then, "all" holds deletion too.
	AnnotationPaused = "trimtab.dev/paused"

	// AnnotationReconcile asks for a pass now. Its value is a token of the caller's
	// choice, unlike the previous one.
	AnnotationReconcile = "trimtab.dev/reconcile"

	// AnnotationAccess limits what the operator may do to the external thing: letters of
	// "cud" (create, update, delete), or "none", or "read-only". Absent means all.
	AnnotationAccess = "trimtab.dev/access-permissions"

	// AnnotationAdoption says when a thing that exists already is taken over: "never",
	// "if-marked" (the default), "if-identical" or "always"; or "from:" with the UID in the
	// thing's mark, to take it from that very owner. The operator's limit holds.
	AnnotationAdoption = "trimtab.dev/adoption"

	// AnnotationDeletion says what becomes of the external thing when the object is
	// deleted: "delete" (the default) or "orphan".
	AnnotationDeletion = "trimtab.dev/deletion"

	// AnnotationEndpoint names the endpoint that the operator talks to now, to say that a
	// thing which was made at another one stays there, and a new one is made here.
	AnnotationEndpoint = "trimtab.dev/endpoint"
)

// AnnotationExternal is the durable record of the external thing behind an object: its id,
// its incarnation, and whether a create may be under way. trimtab writes it before it
// creates and needs it to find the thing again; nobody else should.
const AnnotationExternal = "trimtab.dev/external"

// RecordKind is the kind under which RBAC grants the right to write [AnnotationExternal] on
// living objects: verb update on records.trimtab.dev. No such objects exist.
func RecordKind() schema.GroupKind { return schema.GroupKind{Group: "trimtab.dev", Kind: "Record"} }

// The words of [AnnotationAdoption], from the least to the most.
const (
	AdoptionNever       = "never"
	AdoptionIfMarked    = "if-marked"
	AdoptionIfIdentical = "if-identical"
	AdoptionAlways      = "always"
	// AdoptionFrom is followed by the UID in the mark of the owner from whom to take over.
	AdoptionFrom = "from:"
)

// access is the grammar of [AnnotationAccess], without commas and blanks.
var access = regexp.MustCompile(`^(none|read-only|[cud]{1,3})$`)

// AccessLetters reads a value of [AnnotationAccess]: "CUD", "c,u", "none", "read-only". The
// letters are lower case; none of them occurs twice, so that a word that happens to be made of
// them grants nothing. It does not answer for the empty value.
func AccessLetters(value string) (letters string, ok bool) {
	v := strings.ToLower(strings.NewReplacer(",", "", " ", "", "\t", "").Replace(value))
	if !access.MatchString(v) {
		return "", false
	}
	if v == "none" || v == "read-only" {
		return "", true
	}
	for _, letter := range "cud" {
		if strings.Count(v, string(letter)) > 1 {
			return "", false
		}
	}
	return v, true
}

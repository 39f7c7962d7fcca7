package api

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Condition types. Ready, Reconciling and Stalled follow kstatus. The others describe external
// resources; several of them may be true at once, and Failed may be true with any of them.
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

	// ConditionPolicyInvalid is true while an annotation that limits the operator has an
	// invalid value or asks for more than the operator allows. An invalid value is treated
	// as the most restrictive one.
	ConditionPolicyInvalid = "PolicyInvalid"

	// ConditionDrifted is true while dependents differ from what was applied and are left so
	// because of their mode.
	ConditionDrifted = "Drifted"

	// ConditionPruneBlocked is true while dependents are kept that are no longer rendered, because
	// they are more than the operator allows at a time.
	ConditionPruneBlocked = "PruneBlocked"
	// ConditionContended is true while others keep changing what the operator applies. The
	// dependent is then corrected at most once a minute.
	ConditionContended = "Contended"
)

// Annotations that users and programs set on an object. A change to one of them triggers a
// pass; by default, changes to other annotations do not.
const (
	// AnnotationPaused stops changes to the external resource; it is still observed and
	// reported. "true" pauses until the annotation is removed, an RFC 3339 time until that
	// time. "all" is like "true" and also stops deletion.
	AnnotationPaused = "trimtab.dev/paused"

	// AnnotationReconcile requests a pass now. Its value is any token that differs from
	// the previous one.
	AnnotationReconcile = "trimtab.dev/reconcile"

	// AnnotationAccess limits what the operator may do to the external resource: letters
	// from "cud" (create, update, delete), "none" or "read-only". If it is absent, the
	// operator may do everything that its own limit allows.
	AnnotationAccess = "trimtab.dev/access-permissions"

	// AnnotationAdoption says when an external resource that already exists is taken over:
	// "never", "if-marked" (the default), "if-identical" or "always", or "from:" followed by
	// the UID in the resource's mark, to take it over from that owner only. The operator may
	// allow less.
	AnnotationAdoption = "trimtab.dev/adoption"

	// AnnotationDeletion says what happens to the external resource when the object is
	// deleted: "delete" or "orphan". The default is "delete" unless the operator's author
	// chose "orphan".
	AnnotationDeletion = "trimtab.dev/deletion"

	// AnnotationInterval is how often the external resource is compared with the spec, give or take
	// 10 %, instead of the interval of its kind: a duration of at least 1 s, such as "90s" or "12h".
	AnnotationInterval = "trimtab.dev/interval"

	// AnnotationLateInit, if "true", lets the operator complete the spec: fields that are unset get
	// the value that the API has chosen, each once. It has no effect on kinds whose author does not
	// provide for it.
	AnnotationLateInit = "trimtab.dev/late-init"

	// AnnotationEndpoint, set to the endpoint that the operator uses now, abandons an
	// external resource that was created at another endpoint: it stays there, and a new one
	// is created at this endpoint.
	AnnotationEndpoint = "trimtab.dev/endpoint"
)

// AnnotationLastApplied is what the external resource was last given: the spec as JSON, with digests in place of long
// values and of what is in a field named like a secret. It is empty while that is not known. It is the operator's.
const AnnotationLastApplied = "trimtab.dev/last-applied-spec"

// AnnotationLateInitialized lists the fields that the operator has filled in, because of [AnnotationLateInit], separated by
// commas. They are not filled in again, also if they are removed from the spec.
const AnnotationLateInitialized = "trimtab.dev/late-initialized"

// AnnotationIncarnation is on the Secret with the connection details of an external resource. It says for which of the
// resources that were created for the object it has the values that only a create returns.
const AnnotationIncarnation = "trimtab.dev/incarnation"

// AnnotationPasswords is on the Secret with the connection details of an external resource. It identifies the
// passwords that the resource has: if the Secret has others, the resource gets them. It must not be changed.
const AnnotationPasswords = "trimtab.dev/passwords" //nolint:gosec // no password

// AnnotationExternal is the durable record of an object's external resource: its id, its
// incarnation, and whether a create may be in progress. trimtab writes it before it creates
// the resource and needs it to find the resource again. Nothing else should write it.
const AnnotationExternal = "trimtab.dev/external"

// RecordKind is the kind that RBAC rules name to allow writing [AnnotationExternal] on
// objects that are not being deleted: the verb update on records.trimtab.dev. No objects of
// this kind exist.
func RecordKind() schema.GroupKind { return schema.GroupKind{Group: "trimtab.dev", Kind: "Record"} }

// The values of [AnnotationAdoption], in ascending order of what they permit.
const (
	AdoptionNever       = "never"
	AdoptionIfMarked    = "if-marked"
	AdoptionIfIdentical = "if-identical"
	AdoptionAlways      = "always"
	// AdoptionFrom is a prefix; it is followed by the UID of the present owner, as the
	// resource's mark gives it.
	AdoptionFrom = "from:"
)

// access matches the values of [AnnotationAccess] without commas and blanks.
var access = regexp.MustCompile(`^(none|read-only|[cud]{1,3})$`)

// AccessLetters parses a value of [AnnotationAccess] such as "CUD", "c,u", "none" or
// "read-only" and returns its letters in lower case. A value in which a letter occurs twice is
// not valid, so a word that happens to consist of these letters ("dud") grants nothing. The
// empty value is not valid either.
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

package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ComponentStatus is the status of a kind that stands for a set of Kubernetes objects, its
// dependents. Embed it inline in the kind's status instead of [Status].
//
// +k8s:deepcopy-gen=true
type ComponentStatus struct {
	Status `json:",inline"`

	// LastObservedAt is when the status was last written.
	// +optional
	LastObservedAt *metav1.Time `json:"lastObservedAt,omitempty"`

	// LastAppliedAt is when all dependents were last applied and ready.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`

	// ProcessingSince is when the work on the present dependents began. It is absent when
	// there is none.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// Revision grows by one each time the dependents are to change.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// ProcessingDigest identifies the component and the manifests that the work is about.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// Inventory lists the dependents. An object is listed before it is created and until it
	// is gone.
	// +optional
	// +listType=atomic
	Inventory []InventoryItem `json:"inventory,omitempty"`
}

// InventoryItem is what is recorded of one dependent. Policies and orders are left out where they are
// the operator's defaults.
//
// +k8s:deepcopy-gen=true
type InventoryItem struct {
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// UID is that of the object as it was created or adopted, and empty before that. If others
	// deleted the object and it was created again, the UID changes with the next change of the
	// status: that repair is not worth a write.
	// +optional
	UID string `json:"uid,omitempty"`

	Policies `json:",inline"`
	// +optional
	ApplyOrder int16 `json:"applyOrder,omitempty"`
	// +optional
	DeleteOrder int16 `json:"deleteOrder,omitempty"`

	// ManagedTypes are the extension types that the object adds to the API, if it is a
	// CustomResourceDefinition or an APIService.
	// +optional
	// +listType=atomic
	ManagedTypes []TypeInfo `json:"managedTypes,omitempty"`

	// DependsOn are the keys of dependents that the object needs: they are applied before it,
	// and deleted after it.
	// +optional
	// +listType=atomic
	DependsOn []string `json:"dependsOn,omitempty"`

	// Digest identifies the manifest that was applied last. It is empty before that.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Fingerprint identifies the fields and values that the operator applied, as the API
	// server answered. The object drifted if it differs.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`

	// Phase is where the object is in its life.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Status is the object's health: InProgress, Failed, Current, Terminating, NotFound or Unknown.
	// +optional
	Status string `json:"status,omitempty"`
}

// Key names the dependent within the component: group/Kind/namespace/name, where group and namespace
// may be empty. It is the same for all versions of the kind.
func (i InventoryItem) Key() string {
	return i.Group + "/" + i.Kind + "/" + i.Namespace + "/" + i.Name
}

// Policies say how a dependent is treated. A policy that is empty is the operator's default.
//
// +k8s:deepcopy-gen=true
type Policies struct {
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// +optional
	ReconcilePolicy ReconcilePolicy `json:"reconcilePolicy,omitempty"`
	// +optional
	UpdatePolicy UpdatePolicy `json:"updatePolicy,omitempty"`
	// +optional
	DeletePolicy DeletePolicy `json:"deletePolicy,omitempty"`
	// +optional
	ConflictPolicy ConflictPolicy `json:"conflictPolicy,omitempty"`
	// +optional
	ImmutablePolicy ImmutablePolicy `json:"immutablePolicy,omitempty"`
	// +optional
	Mode Mode `json:"mode,omitempty"`
}

// TypeInfo names a type of objects.
//
// +k8s:deepcopy-gen=true
type TypeInfo struct {
	// Group is an API group. "*" is any, and "*.example.org" any below example.org.
	Group string `json:"group"`
	// Kind is a kind. "*" is any.
	Kind string `json:"kind"`
}

// ComponentObject is a kind that has a [ComponentStatus]. The name of its method is the one of
// component-operator-runtime.
type ComponentObject interface {
	// GetStatus returns the object's status for reading and writing. It must not return nil.
	GetStatus() *ComponentStatus
}

// StatusOf returns the common status of an object, which is an [Object] or a [ComponentObject]; false if
// it is neither.
func StatusOf(obj any) (*Status, bool) {
	switch o := obj.(type) {
	case Object:
		return o.TrimtabStatus(), true
	case ComponentObject:
		return &o.GetStatus().Status, true
	}
	return nil, false
}

// Phase is where a dependent is in its life.
type Phase string

// The phases of a dependent. A deleted one leaves the inventory.
const (
	PhaseScheduledForApplication Phase = "ScheduledForApplication"
	PhaseCreating                Phase = "Creating"
	PhaseUpdating                Phase = "Updating"
	PhaseReady                   Phase = "Ready"
	PhaseScheduledForCompletion  Phase = "ScheduledForCompletion"
	PhaseCompleting              Phase = "Completing"
	PhaseCompleted               Phase = "Completed"
	PhaseScheduledForDeletion    Phase = "ScheduledForDeletion"
	PhaseDeleting                Phase = "Deleting"
)

// AdoptionPolicy says what happens if a dependent exists and is not the component's own.
type AdoptionPolicy string

const (
	// AdoptionPolicyNever reports a failure.
	AdoptionPolicyNever AdoptionPolicy = "never"
	// AdoptionPolicyIfUnowned adopts the object if it has no owner.
	AdoptionPolicyIfUnowned AdoptionPolicy = "if-unowned"
	// AdoptionPolicyAlways adopts the object even from another owner.
	AdoptionPolicyAlways AdoptionPolicy = "always"
)

// ReconcilePolicy says when a dependent is written.
type ReconcilePolicy string

const (
	// ReconcilePolicyOnObjectChange writes if the manifest changed or the object drifted.
	ReconcilePolicyOnObjectChange ReconcilePolicy = "on-object-change"
	// ReconcilePolicyOnObjectOrComponentChange writes in addition if the component has a new
	// generation.
	ReconcilePolicyOnObjectOrComponentChange ReconcilePolicy = "on-object-or-component-change"
	// ReconcilePolicyOnce creates the object and never writes it again.
	ReconcilePolicyOnce ReconcilePolicy = "once"
)

// UpdatePolicy says how a dependent that exists is brought to its manifest.
type UpdatePolicy string

const (
	// UpdatePolicyReplace replaces the object with the manifest, by PUT.
	UpdatePolicyReplace UpdatePolicy = "replace"
	// UpdatePolicySsaMerge uses server-side apply; fields of others stay.
	UpdatePolicySsaMerge UpdatePolicy = "ssa-merge"
	// UpdatePolicySsaOverride uses server-side apply and takes over the fields that kubectl and
	// Helm own.
	UpdatePolicySsaOverride UpdatePolicy = "ssa-override"
	// UpdatePolicyRecreate deletes the object and creates it again.
	UpdatePolicyRecreate UpdatePolicy = "recreate"
)

// DeletePolicy says what happens to a dependent that is no longer wanted.
type DeletePolicy string

const (
	// DeletePolicyDelete deletes the object.
	DeletePolicyDelete DeletePolicy = "delete"
	// DeletePolicyOrphan leaves the object and gives up its ownership.
	DeletePolicyOrphan DeletePolicy = "orphan"
	// DeletePolicyOrphanOnApply is orphan if the object left the manifests, and delete if the
	// component is deleted.
	DeletePolicyOrphanOnApply DeletePolicy = "orphan-on-apply"
	// DeletePolicyOrphanOnDelete is delete if the object left the manifests, and orphan if the
	// component is deleted.
	DeletePolicyOrphanOnDelete DeletePolicy = "orphan-on-delete"
)

// ConflictPolicy says what happens if a field that is to be applied has another value and another owner.
type ConflictPolicy string

const (
	// ConflictPolicyForce takes the field over.
	ConflictPolicyForce ConflictPolicy = "force"
	// ConflictPolicyFail changes nothing and reports the field and its owner. It needs an update
	// policy that uses server-side apply.
	ConflictPolicyFail ConflictPolicy = "fail"
)

// ImmutablePolicy says what happens if a field is to change that the API server does not let change.
type ImmutablePolicy string

const (
	// ImmutablePolicyFail reports a failure.
	ImmutablePolicyFail ImmutablePolicy = "fail"
	// ImmutablePolicyRecreate deletes the object and creates it again, if a dry run shows that
	// the API server would accept it then.
	ImmutablePolicyRecreate ImmutablePolicy = "recreate"
)

// Mode says how far the operator goes with a dependent.
type Mode string

const (
	// ModeFull applies manifests and corrects drift.
	ModeFull Mode = "full"
	// ModeDetectOnly applies manifests when they change, and reports drift without correcting it.
	ModeDetectOnly Mode = "detect-only"
	// ModeSuspended changes nothing, whatever changes. Deletion of the component is not
	// suspended.
	ModeSuspended Mode = "suspended"
)

// NamespacePolicy says what happens if a dependent's namespace does not exist and is not a dependent.
type NamespacePolicy string

const (
	// NamespacePolicyCreate creates the namespace, without labels and annotations. It is never
	// deleted.
	NamespacePolicyCreate NamespacePolicy = "create"
	// NamespacePolicyDoNotCreate reports a failure.
	NamespacePolicyDoNotCreate NamespacePolicy = "do-not-create"
)

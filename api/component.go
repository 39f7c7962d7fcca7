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

	// ProcessingSince is when the operator began to apply the current manifests. It is absent
	// when all dependents are applied and ready.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// Wave is the wave of dependents that is not ready, if waves have a timeout.
	// +optional
	Wave *ComponentWave `json:"wave,omitempty"`

	// Revision grows by one each time the spec, something that it refers to, or the version of the renderer
	// changes. It is 1 until the component is ready for the first time.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// RevisionDigest identifies the spec, what it refers to, and the version of the renderer.
	// +optional
	RevisionDigest string `json:"revisionDigest,omitempty"`

	// ProcessingDigest identifies the manifests that are being applied or were applied last,
	// and the generation of the component that they were rendered from.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// Cluster identifies the cluster of the dependents if it is another one than the component's.
	// It is "unknown" if the cluster does not let the operator read its namespace kube-system.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// KubeconfigSecrets are the names of the Secrets with the kubeconfigs with which the dependents were
	// applied. A finalizer protects these Secrets until the dependents are gone, even if the component
	// names others now.
	// +optional
	// +listType=atomic
	KubeconfigSecrets []string `json:"kubeconfigSecrets,omitempty"`

	// DeletionStage says how far the deletion of a component with delete hooks has come. It is empty as long
	// as the component is not deleted, and without delete hooks.
	// +optional
	DeletionStage DeletionStage `json:"deletionStage,omitempty"`

	// Inventory lists the dependents. An object is added before it is created, and removed
	// once it no longer exists.
	// +optional
	// +listType=atomic
	Inventory []InventoryItem `json:"inventory,omitempty"`

	// CompactInventory is the compressed inventory of a component with many dependents. Use
	// [ComponentStatus.Items] to read it.
	// +optional
	CompactInventory string `json:"compactInventory,omitempty"`

	// InventoryShards are the names of the ConfigMaps, in the namespace of the component, that contain the
	// inventory of a component with thousands of dependents. If one of the other two lists is set as well,
	// these ConfigMaps are obsolete and will be deleted.
	// +optional
	// +listType=atomic
	InventoryShards []string `json:"inventoryShards,omitempty"`
}

// DeletionStage is a stage in the deletion of a component with delete hooks: objects that exist only while the
// component is deleted. A stage is written to the status before anything is done in it.
type DeletionStage string

// The stages follow each other in this order. Skipped takes the place of the last one if hooks could not run
// because their namespace, or the Secret that contains them, is being deleted.
const (
	// DeletionStagePreDelete: the hooks before the deletion of the dependents run. No dependent is deleted.
	DeletionStagePreDelete DeletionStage = "PreDelete"
	// DeletionStageDependents: the dependents and the hooks of the stage before are deleted.
	DeletionStageDependents DeletionStage = "Dependents"
	// DeletionStagePostDelete: the hooks after the deletion of the dependents run.
	DeletionStagePostDelete DeletionStage = "PostDelete"
	// DeletionStageRest: no hook runs any more, and all that is left is deleted.
	DeletionStageRest DeletionStage = "Rest"
	// DeletionStageSkipped is DeletionStageRest after hooks that could not run.
	DeletionStageSkipped DeletionStage = "Skipped"
)

// ComponentWave is a wave of dependents that is being applied.
//
// +k8s:deepcopy-gen=true
type ComponentWave struct {
	// Order is the apply order of the wave.
	Order int16 `json:"order"`
	// Since is when the wave began.
	Since metav1.Time `json:"since"`
}

// InventoryItem is the record of one dependent. Orders that are 0 are omitted, and so are the policies force,
// fail and full.
//
// +k8s:deepcopy-gen=true
type InventoryItem struct { //nolint:recvcheck // the generated methods have pointers
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// UID is the UID of the object. It is empty until the object is created or adopted. If the
	// object is deleted by others and created again, the UID is updated with the next change to
	// the status.
	// +optional
	UID string `json:"uid,omitempty"`

	Policies `json:",inline"`
	// +optional
	ApplyOrder int16 `json:"applyOrder,omitempty"`
	// +optional
	DeleteOrder int16 `json:"deleteOrder,omitempty"`

	// ManagedTypes are the types that the object adds to the API, if it is a
	// CustomResourceDefinition or an APIService.
	// +optional
	// +listType=atomic
	ManagedTypes []TypeInfo `json:"managedTypes,omitempty"`

	// DependsOn lists the keys of the dependents that this one needs. They are applied before
	// it and deleted after it.
	// +optional
	// +listType=atomic
	DependsOn []string `json:"dependsOn,omitempty"`

	// Digest identifies the manifest that was last applied. It is empty until then.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Fingerprint identifies the fields that the operator owns and their values, as the API
	// server returned them. If the object no longer matches it, the object has drifted.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`

	// Phase is the phase of the object's life cycle.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Kept is true for an object that is no longer rendered and is kept because most dependents are no
	// longer rendered (condition PruneBlocked). It becomes false when the object is rendered again, or when
	// the component's annotation allow-prune allows its deletion.
	// +optional
	Kept bool `json:"kept,omitempty"`

	// Since is the time since which the object, with its present manifest, is not ready.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Status is the object's health: InProgress, Failed, Current, Terminating, NotFound or Unknown.
	// +optional
	Status string `json:"status,omitempty"`

	// Record is what the driver of a dependent that is not a Kubernetes object needs to find and delete
	// it. It is written before the driver acts. Only the driver understands it.
	// +optional
	Record []byte `json:"record,omitempty"`
}

// Key identifies the dependent within the component. It has the form group/Kind/namespace/name, where
// group and namespace may be empty. It does not depend on the version of the kind.
func (i InventoryItem) Key() string {
	return i.Group + "/" + i.Kind + "/" + i.Namespace + "/" + i.Name
}

// Policies determine how a dependent is managed. An empty policy means the operator's default.
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
	// Group is an API group. "*" means any group, and "*.example.org" any subdomain of example.org.
	Group string `json:"group"`
	// Kind is a kind. "*" means any kind.
	Kind string `json:"kind"`
}

// ComponentObject is a kind that has a [ComponentStatus]. The method has the same name as in
// component-operator-runtime.
type ComponentObject interface {
	// GetStatus returns the object's status for reading and writing. It must not return nil.
	GetStatus() *ComponentStatus
}

// StatusOf returns the common status of obj and true if obj is an [Object] or a [ComponentObject], and nil
// and false otherwise.
func StatusOf(obj any) (*Status, bool) {
	switch o := obj.(type) {
	case Object:
		return o.TrimtabStatus(), true
	case ComponentObject:
		return &o.GetStatus().Status, true
	}
	return nil, false
}

// Phase is a phase of a dependent's life cycle.
type Phase string

// The phases of a dependent. A dependent that has been deleted is no longer in the inventory.
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

// AdoptionPolicy says what happens if an object already exists and does not belong to the component.
type AdoptionPolicy string

const (
	// AdoptionPolicyNever reports a failure.
	AdoptionPolicyNever AdoptionPolicy = "never"
	// AdoptionPolicyIfUnowned adopts the object if it has no owner.
	AdoptionPolicyIfUnowned AdoptionPolicy = "if-unowned"
	// AdoptionPolicyAlways adopts the object even if it has another owner.
	AdoptionPolicyAlways AdoptionPolicy = "always"
)

// ReconcilePolicy says when a dependent is written.
type ReconcilePolicy string

const (
	// ReconcilePolicyOnObjectChange writes the object if its manifest changed or the object drifted.
	ReconcilePolicyOnObjectChange ReconcilePolicy = "on-object-change"
	// ReconcilePolicyOnObjectOrComponentChange also writes the object if the component has a new
	// generation.
	ReconcilePolicyOnObjectOrComponentChange ReconcilePolicy = "on-object-or-component-change"
	// ReconcilePolicyOnce creates the object and never writes it again.
	ReconcilePolicyOnce ReconcilePolicy = "once"
)

// UpdatePolicy says how an existing dependent is changed to match its manifest.
type UpdatePolicy string

const (
	// UpdatePolicyReplace replaces the object with the manifest, using PUT.
	UpdatePolicyReplace UpdatePolicy = "replace"
	// UpdatePolicySsaMerge uses server-side apply and keeps fields that others own.
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
	// DeletePolicyOrphan keeps the object and gives up its ownership.
	DeletePolicyOrphan DeletePolicy = "orphan"
	// DeletePolicyOrphanOnApply acts as orphan if the object is no longer rendered, and as delete
	// if the component is deleted.
	DeletePolicyOrphanOnApply DeletePolicy = "orphan-on-apply"
	// DeletePolicyOrphanOnDelete acts as delete if the object is no longer rendered, and as orphan
	// if the component is deleted.
	DeletePolicyOrphanOnDelete DeletePolicy = "orphan-on-delete"
)

// ConflictPolicy says what happens if a field to apply has a different value and another owner.
type ConflictPolicy string

const (
	// ConflictPolicyForce takes over the field.
	ConflictPolicyForce ConflictPolicy = "force"
	// ConflictPolicyFail changes nothing and reports the field and its owner. It requires an update
	// policy that uses server-side apply.
	ConflictPolicyFail ConflictPolicy = "fail"
)

// ImmutablePolicy says what happens if a manifest changes a field that the API server treats as immutable.
type ImmutablePolicy string

const (
	// ImmutablePolicyFail reports a failure.
	ImmutablePolicyFail ImmutablePolicy = "fail"
	// ImmutablePolicyRecreate deletes the object and creates it again, if a dry run shows that
	// the API server would accept the new object.
	ImmutablePolicyRecreate ImmutablePolicy = "recreate"
)

// Mode says how much the operator may do to a dependent.
type Mode string

const (
	// ModeFull applies manifests and corrects drift.
	ModeFull Mode = "full"
	// ModeDetectOnly applies manifests when they change, and reports drift without correcting it.
	ModeDetectOnly Mode = "detect-only"
	// ModeSuspended changes nothing, even if the manifest changes. Deletion of the component is
	// not suspended.
	ModeSuspended Mode = "suspended"
)

// NamespacePolicy says what happens if the namespace of a dependent does not exist and is not itself a
// dependent.
type NamespacePolicy string

const (
	// NamespacePolicyCreate creates the namespace, without labels and annotations. It is never
	// deleted.
	NamespacePolicyCreate NamespacePolicy = "create"
	// NamespacePolicyDoNotCreate reports a failure.
	NamespacePolicyDoNotCreate NamespacePolicy = "do-not-create"
)

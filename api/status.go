package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Status is the status that all kinds have in common. Embed it inline in the kind's status.
// It is written at most once per pass. Decisions do not depend on it: tampering with it
// changes nothing that the operator does. The inventory of a [ComponentStatus] is the exception.
//
// +k8s:deepcopy-gen=true
type Status struct {
	// ObservedGeneration is the generation of the spec that this status describes, whether
	// or not it could be applied.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the last generation of the spec that was applied successfully.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// State summarizes the status in one word, such as Pending, Creating or Succeeded. It
	// is meant for display; programs should read the conditions.
	// +optional
	State string `json:"state,omitempty"`

	// Message explains the current state in one sentence and says what to do if someone
	// has to act. It contains no secrets.
	// +optional
	Message string `json:"message,omitempty"`

	// HandledReconcile is the last value of the annotation trimtab.dev/reconcile that has
	// been acted on.
	// +optional
	HandledReconcile string `json:"handledReconcile,omitempty"`

	// LastPass describes the last pass to an operator that starts later. It is set only if the controller of the kind
	// has a revision, see loop.Options.Revision, and the last pass succeeded.
	// +optional
	LastPass *LastPass `json:"lastPass,omitempty"`

	// Conditions always include Ready; Reconciling and Stalled are present only while they
	// are true. Ready refers to the spec of its own observedGeneration, which may be older
	// than the current one. Conditions set by other programs are preserved.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// LastPass lets an operator that starts see which objects need no pass.
//
// +k8s:deepcopy-gen=true
type LastPass struct {
	// Inputs is a hash of what the pass worked on: the generation, labels, annotations and owner references of the
	// object, and the revision of the controller.
	Inputs string `json:"inputs"`

	// Next is after how long the pass asked for the next one. It is unset if it did not ask.
	// +optional
	Next *metav1.Duration `json:"next,omitempty"`
}

// Object is a kind that has a [Status].
type Object interface {
	// TrimtabStatus returns the object's status for reading and writing. It must not
	// return nil.
	TrimtabStatus() *Status
}

// ExternalStatus is the status of a kind that stands for an external resource: one that
// lives outside the cluster. Embed it inline in the kind's status instead of [Status].
//
// +k8s:deepcopy-gen=true
type ExternalStatus struct {
	Status `json:",inline"`

	// External describes the external resource as it was last observed.
	// +optional
	External *ExternalObservation `json:"external,omitempty"`
}

// ExternalObservation is the last observation of an external resource.
//
// +k8s:deepcopy-gen=true
type ExternalObservation struct {
	// ID identifies the resource in the external system.
	// +optional
	ID string `json:"id,omitempty"`

	// Status is the resource's state in the words of the external system.
	// +optional
	Status string `json:"status,omitempty"`

	// Incarnation is 1 for the first resource created for this object and grows by one
	// each time the resource is created again.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`

	// LastApplied stands for what annotation trimtab.dev/last-applied-spec had when this status was written.
	// +optional
	LastApplied string `json:"lastApplied,omitempty"`

	// LastObservedTime is when the resource was last observed, if later attempts failed or were not possible. After a
	// restart of the operator, it may be earlier than that. It is unset if the status describes the present.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// ExternalObject is a kind that has an [ExternalStatus].
type ExternalObject interface {
	Object
	// TrimtabExternal returns the object's status for reading and writing. It must not
	// return nil.
	TrimtabExternal() *ExternalStatus
}

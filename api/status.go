package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Status is what every kind run by trimtab reports. Embed it inline in the kind's
// status. It is a projection, written once per pass and never read to decide: tampering
// with it changes nothing that the operator does.
//
// +k8s:deepcopy-gen=true
type Status struct {
	// ObservedGeneration is the generation that the pass which wrote this status
	// processed, whether it succeeded or not.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the generation of the last pass that succeeded.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// State is one word for people, derived at every pass: Pending, Creating, Succeeded
	// and so on. It is free text; programs read conditions.
	// +optional
	State string `json:"state,omitempty"`

	// Message says in one sentence why the state is what it is now, and what to do where a
	// person is needed. It holds no secrets and nothing that differs from pass to pass.
	// +optional
	Message string `json:"message,omitempty"`

	// HandledReconcile echoes the token of the last annotation
	// trimtab.dev/reconcile that a pass has honoured.
	// +optional
	HandledReconcile string `json:"handledReconcile,omitempty"`

	// Conditions hold Ready always, Reconciling and Stalled only while true, with the reason
	// and message of the present, and the kind's own. Ready is true of the spec of its observedGeneration, which may be an earlier
	// one. Types that others wrote are preserved.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// Object is a kind that carries a [Status].
type Object interface {
	// TrimtabStatus returns the kind's status for reading and writing, never nil.
	TrimtabStatus() *Status
}

// ExternalStatus is the status of a kind that stands for one thing outside the cluster.
// Embed it inline in the kind's status instead of [Status].
//
// +k8s:deepcopy-gen=true
type ExternalStatus struct {
	Status `json:",inline"`

	// External describes the thing outside, as last observed.
	// +optional
	External *ExternalObservation `json:"external,omitempty"`
}

// ExternalObservation is the last that was seen of the thing outside.
//
// +k8s:deepcopy-gen=true
type ExternalObservation struct {
	// ID is the identity of the thing in its own system.
	// +optional
	ID string `json:"id,omitempty"`

	// Status is the system's own word for the thing's state.
	// +optional
	Status string `json:"status,omitempty"`

	// Incarnation counts how often the thing was created for this object; it grows when
	// the thing is re-created.
	// +optional
	Incarnation int64 `json:"incarnation,omitempty"`
}

// ExternalObject is a kind that carries an [ExternalStatus].
type ExternalObject interface {
	Object
	// TrimtabExternal returns the kind's external status, never nil.
	TrimtabExternal() *ExternalStatus
}

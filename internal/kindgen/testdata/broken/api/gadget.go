// Package api is a kind with a marker that says nothing.
//
// +kubebuilder:object:generate=true
// +groupName=test.trimtab.dev
// +versionName=v1
package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Gadget has a size.
//
// +kubebuilder:object:root=true
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Minimum=many
	Size int32 `json:"size,omitempty"`
}

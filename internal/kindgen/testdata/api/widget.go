// Package api is a kind to generate for.
//
// +kubebuilder:object:generate=true
// +groupName=test.trimtab.dev
// +versionName=v1
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Widget is a kind with trimtab's status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status api.ExternalStatus `json:"status,omitempty"`
}

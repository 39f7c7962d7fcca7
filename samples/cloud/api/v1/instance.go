// Package v1 defines the kind Instance.
//
// +kubebuilder:object:generate=true
// +groupName=cloud.trimtab.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.external.id`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`

// Instance is an instance in the cloud.
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstanceSpec       `json:"spec,omitempty"`
	Status            api.ExternalStatus `json:"status,omitempty"`
}

// InstanceSpec is what an instance should be.
type InstanceSpec struct {
	// Size is small, medium or large.
	// +kubebuilder:validation:Enum=small;medium;large
	Size string `json:"size"`
	// Login is the token to log in to the cloud with.
	Login api.SecretKeyReference `json:"login"`
	// Connection is the Secret that gets the id and the key of the instance.
	Connection api.SecretReference `json:"connection"`
}

// TrimtabStatus implements api.Object.
func (i *Instance) TrimtabStatus() *api.Status { return &i.Status.Status }

// TrimtabExternal implements api.ExternalObject.
func (i *Instance) TrimtabExternal() *api.ExternalStatus { return &i.Status }

// InstanceList is a list of instances.
//
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Instance `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "cloud.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(v1, &Instance{}, &InstanceList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

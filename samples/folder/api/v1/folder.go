// Package v1 defines the kind Folder.
//
// +kubebuilder:object:generate=true
// +groupName=folders.trimtab.dev
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
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// region: types

// Folder asks for a folder on the operator's disk.
type Folder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FolderSpec         `json:"spec,omitempty"`
	Status            api.ExternalStatus `json:"status,omitempty"`
}

// FolderSpec is the desired state of a folder.
type FolderSpec struct {
	// ReadOnly removes write permission from the folder.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// endregion: types

// TrimtabStatus implements api.Object.
func (f *Folder) TrimtabStatus() *api.Status { return &f.Status.Status }

// TrimtabExternal implements api.ExternalObject.
func (f *Folder) TrimtabExternal() *api.ExternalStatus { return &f.Status }

// FolderList is a list of folders.
//
// +kubebuilder:object:root=true
type FolderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Folder `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "folders.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(v1, &Folder{}, &FolderList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

// Package v1 defines the kind Guestbook.
//
// +kubebuilder:object:generate=true
// +groupName=guestbooks.trimtab.dev
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

// Guestbook asks for a web page where people leave messages, and for the database behind it.
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   GuestbookSpec       `json:"spec,omitempty"`
	Status api.ComponentStatus `json:"status,omitempty"`
}

// GuestbookSpec is the desired state of a guestbook.
type GuestbookSpec struct {
	// Pages is how many Pods serve the page.
	// +kubebuilder:default=2
	Pages int32 `json:"pages,omitempty"`
	// Welcome is the text on the page.
	Welcome string `json:"welcome,omitempty"`
}

// endregion: types

// GetStatus implements api.ComponentObject.
func (g *Guestbook) GetStatus() *api.ComponentStatus { return &g.Status }

// GuestbookList is a list of guestbooks.
//
// +kubebuilder:object:root=true
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Guestbook `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "guestbooks.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(v1, &Guestbook{}, &GuestbookList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

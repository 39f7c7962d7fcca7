// Package v1 has the kind WebPage.
//
// +kubebuilder:object:generate=true
// +groupName=webpages.trimtab.dev
// +versionName=v1
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// WebPage is a page with the server that serves it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Exposed",type=boolean,JSONPath=`.spec.exposed`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WebPage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebPageSpec   `json:"spec,omitempty"`
	Status            WebPageStatus `json:"status,omitempty"`
}

// WebPageSpec says what is served.
type WebPageSpec struct {
	// HTML is the page.
	HTML string `json:"html"`
	// Exposed says whether the page can be reached from outside of the cluster.
	// +optional
	Exposed bool `json:"exposed,omitempty"`
}

// WebPageStatus is the common status and the ConfigMap with the page.
type WebPageStatus struct {
	api.Status `json:",inline"`
	// +optional
	HTMLConfigMap string `json:"htmlConfigMap,omitempty"`
}

// TrimtabStatus implements api.Object.
func (p *WebPage) TrimtabStatus() *api.Status { return &p.Status.Status }

// WebPageList is a list of WebPages.
//
// +kubebuilder:object:root=true
type WebPageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebPage `json:"items"`
}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "webpages.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(v1, &WebPage{}, &WebPageList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

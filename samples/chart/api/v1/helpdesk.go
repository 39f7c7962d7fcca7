// Package v1 has the kind Helpdesk.
//
// +kubebuilder:object:generate=true
// +groupName=helpdesks.trimtab.dev
// +versionName=v1
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// Helpdesk is an installation of the chart.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Helpdesk struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   HelpdeskSpec        `json:"spec,omitempty"`
	Status api.ComponentStatus `json:"status,omitempty"`
}

// HelpdeskSpec has the values of the chart that users may set.
type HelpdeskSpec struct {
	// Replicas is how many Pods answer.
	// +kubebuilder:default=1
	Replicas int32 `json:"replicas,omitempty"`
	// Greeting is what each ticket is answered with first.
	Greeting string `json:"greeting,omitempty"`
	// Cache is a sub-chart.
	Cache Cache `json:"cache,omitempty"`
}

// Cache is the cache of a Helpdesk.
type Cache struct {
	// Enabled says that there is one.
	Enabled bool `json:"enabled,omitempty"`
}

// GetStatus implements component.Object.
func (h *Helpdesk) GetStatus() *api.ComponentStatus { return &h.Status }

// HelpdeskList is a list of Helpdesks.
//
// +kubebuilder:object:root=true
type HelpdeskList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Helpdesk `json:"items"`
}

// AddToScheme adds the kinds to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "helpdesks.trimtab.dev", Version: "v1"}
	s.AddKnownTypes(v1, &Helpdesk{}, &HelpdeskList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

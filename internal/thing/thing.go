// Package thing defines a kind for tests of external resources. A Thing stands for a resource
// of an imaginary API.
//
// +kubebuilder:object:generate=true
// +groupName=things.trimtab.dev
// +versionName=v1
package thing

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "things.trimtab.dev", Version: "v1"}

// CRDs contains the CustomResourceDefinition of Thing.
//
//go:embed crds
var CRDs embed.FS

// Thing stands for one resource of the imaginary API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec is the desired state of the resource.
type Spec struct {
	// Name of the resource in its API. If empty, the operator chooses one.
	// +optional
	Name string `json:"name,omitempty"`
	// Size can be changed in place.
	// +optional
	Size int `json:"size,omitempty"`
	// Tier cannot be changed in place: a change requires a new resource. Empty means that
	// it is not managed.
	// +optional
	Tier string `json:"tier,omitempty"`
	// Version cannot be changed at all. Empty means that it is not managed.
	// +optional
	Version string `json:"version,omitempty"`
	// Needs names another Thing that must be Ready first.
	// +optional
	Needs string `json:"needs,omitempty"`
	// Account that the resource is in.
	// +optional
	Account string `json:"account,omitempty"`
	// Token to log in with.
	// +optional
	Token *api.SecretKeyReference `json:"token,omitempty"`
	// Connection names the Secret for the connection details.
	// +optional
	Connection string `json:"connection,omitempty"`
	// Provider names a Provider, or a ClusterProvider, that says how to log in.
	// +optional
	Provider string `json:"provider,omitempty"`
}

// Status is the last observation of the resource.
type Status struct {
	api.ExternalStatus `json:",inline"`
	// Host is the address of the resource.
	// +optional
	Host string `json:"host,omitempty"`
}

// ProviderSpec says where an API is and how to log in.
type ProviderSpec struct {
	// URL of the API.
	URL string `json:"url"`
	// Token to log in with.
	// +optional
	Token api.SecretKeyReference `json:"token,omitempty"`
}

// Provider says how to log in to the imaginary API.
//
// +kubebuilder:object:root=true
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProviderSpec `json:"spec,omitempty"`
}

// ProviderList is a list of Provider.
//
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}

// ClusterProvider is a Provider for all namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type ClusterProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProviderSpec `json:"spec,omitempty"`
}

// ClusterProviderList is a list of ClusterProvider.
//
// +kubebuilder:object:root=true
type ClusterProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProvider `json:"items"`
}

// TrimtabStatus implements api.Object.
func (t *Thing) TrimtabStatus() *api.Status { return &t.Status.Status }

// TrimtabExternal implements api.ExternalObject.
func (t *Thing) TrimtabExternal() *api.ExternalStatus { return &t.Status.ExternalStatus }

// ThingList is a list of Thing.
//
// +kubebuilder:object:root=true
type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Thing `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Thing{}, &ThingList{}, &Provider{}, &ProviderList{}, &ClusterProvider{}, &ClusterProviderList{}, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

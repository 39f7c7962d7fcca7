// Package bundle defines a kind for tests of components. The dependents of a Bundle are those that its
// spec lists.
//
// +kubebuilder:object:generate=true
// +groupName=bundles.trimtab.dev
// +versionName=v1
package bundle

import (
	"embed"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "bundles.trimtab.dev", Version: "v1"}

// CRDs contains the CustomResourceDefinition of Bundle.
//
//go:embed crds
var CRDs embed.FS

// Bundle stands for the objects that its spec lists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec lists the dependents.
type Spec struct {
	// Objects are manifests.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// Status is the status of a component.
type Status struct {
	api.ComponentStatus `json:",inline"`
	// Note is not the framework's.
	// +optional
	Note string `json:"note,omitempty"`
}

// GetStatus implements api.ComponentObject.
func (b *Bundle) GetStatus() *api.ComponentStatus { return &b.Status.ComponentStatus }

// Render returns the objects of the spec.
func (b *Bundle) Render() ([]client.Object, error) {
	var objects []client.Object
	for i, raw := range b.Spec.Objects {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &u.Object); err != nil {
			return nil, fmt.Errorf("spec.objects[%d]: %w", i, err)
		}
		objects = append(objects, u)
	}
	return objects, nil
}

// BundleList is a list of Bundle.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bundle `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Bundle{}, &BundleList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

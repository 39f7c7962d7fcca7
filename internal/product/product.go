// Package product has a kind for tests of components with the interfaces of component-operator-runtime:
// its dependents are those that its spec lists, and its spec has all that can be embedded.
//
// +kubebuilder:object:generate=true
// +groupName=products.trimtab.dev
// +versionName=v1
package product

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
	"github.com/trimtab-dev/trimtab/component"
)

// GroupVersion is the group and version of the kind.
var GroupVersion = schema.GroupVersion{Group: "products.trimtab.dev", Version: "v1"}

// CRDs are the generated definitions.
//
//go:embed crds
var CRDs embed.FS

// Product is a component.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +trimtab:component
type Product struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec lists dependents.
type Spec struct {
	api.PlacementSpec     `json:",inline"`
	api.ClientSpec        `json:",inline"`
	api.ImpersonationSpec `json:",inline"`
	api.SuspensionSpec    `json:",inline"`
	api.RequeueSpec       `json:",inline"`
	api.RetrySpec         `json:",inline"`
	api.TimeoutSpec       `json:",inline"`
	api.PolicySpec        `json:",inline"`

	// Objects are manifests.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Objects []runtime.RawExtension `json:"objects,omitempty"`
	// Settings and Passwords become data of the ConfigMap "settings".
	// +optional
	Settings *api.ConfigMapReference `json:"settings,omitempty"`
	// +optional
	Passwords map[string]api.SecretKeyReference `json:"passwords,omitempty"`
}

// Status is the framework's, and a note.
type Status struct {
	component.Status `json:",inline"`
	// Note is not the framework's.
	// +optional
	Note string `json:"note,omitempty"`
}

// Render returns the dependents of a spec, which its references follow as a ConfigMap.
func Render(s *Spec) ([]client.Object, error) {
	var objects []client.Object
	for i, raw := range s.Objects {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &u.Object); err != nil {
			return nil, fmt.Errorf("spec.objects[%d]: %w", i, err)
		}
		objects = append(objects, u)
	}
	data := map[string]any{}
	if s.Settings != nil {
		for key, value := range s.Settings.Data() {
			data[key] = value
		}
	}
	for key, ref := range s.Passwords {
		data[key] = string(ref.Value())
	}
	if len(data) > 0 {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": data,
		}})
	}
	return objects, nil
}

// ProductList is a list of products.
//
// +kubebuilder:object:root=true
type ProductList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Product `json:"items"`
}

// AddToScheme adds the kind to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Product{}, &ProductList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

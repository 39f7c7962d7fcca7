package apiserver

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMapper proves that a mapper answers as one made from discovery: without a version it finds the preferred one,
// and it knows a list as a kind of its own.
func TestMapper(t *testing.T) {
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}
	}
	server, err := New([]*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "sets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: "Namespaced", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "sets", Kind: "Set"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1", false), version("v1beta2", true), version("v1alpha1", false)},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m := server.Mapper()
	for kind, want := range map[schema.GroupKind]string{
		{Group: "apps", Kind: "DaemonSet"}:      "apps/v1, namespace",
		{Group: "apps", Kind: "DaemonSetList"}:  "apps/v1, namespace",
		{Kind: "NodeList"}:                      "v1, root",
		{Group: "example.com", Kind: "Set"}:     "example.com/v1beta2, namespace",
		{Group: "example.com", Kind: "SetList"}: "example.com/v1beta2, namespace",
	} {
		found, err := m.RESTMapping(kind)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := fmt.Sprintf("%s, %s", found.GroupVersionKind.GroupVersion(), found.Scope.Name()); got != want {
			t.Errorf("%s is in %s, want %s", kind, got, want)
		}
	}
	for resource, want := range map[schema.GroupVersionResource]string{
		{Group: "apps", Resource: "daemonsets"}:                      "apps/v1, Kind=DaemonSet",
		{Group: "example.com", Resource: "sets"}:                     "example.com/v1beta2, Kind=Set",
		{Group: "example.com", Version: "v1beta1", Resource: "sets"}: "example.com/v1beta1, Kind=Set",
	} {
		if got, err := m.KindFor(resource); err != nil || got.String() != want {
			t.Errorf("%s is of kind %s, %v, want %s", resource, got, err, want)
		}
	}
}

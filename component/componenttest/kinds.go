package componenttest

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Group is the API group of the test kinds.
const Group = "test.trimtab.dev"

// Finalizer keeps an object of a test kind until [Finish] or [Play] lets it go.
const Finalizer = Group + "/held"

// Kind returns the kind of a name in [Group].
func Kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: "v1", Kind: name}
}

// Kinds returns the CustomResourceDefinitions of Foo, which is namespaced, and of Bar, which is not. Nobody
// reconciles them: tests play their controller with [Observe], [Finish] or [Play].
func Kinds() []client.Object {
	return []client.Object{CRD("Foo", apiextensionsv1.NamespaceScoped), CRD("Bar", apiextensionsv1.ClusterScoped)}
}

// CRD returns the CustomResourceDefinition of a kind in [Group]: a dependent that brings its own type, such
// as Baz. Its objects have any spec and any status.
func CRD(kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}

// New returns an object of a test kind, for a spec or a manifest.
func New(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(Kind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

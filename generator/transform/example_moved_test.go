package transform_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
	"github.com/trimtab-dev/trimtab/generator/templates"
	"github.com/trimtab-dev/trimtab/generator/transform"
)

// region: kind

// Shop is a kind of components. Its spec has the fields that it had before, with the same names.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ShopSpec         `json:"spec"`
	Status component.Status `json:"status"`
}

// ShopSpec is the spec of a Shop: the parameters of its generator.
type ShopSpec struct {
	api.PlacementSpec `json:",inline"`
	api.PolicySpec    `json:",inline"`

	Version string `json:"version,omitempty"`
}

// ToUnstructured implements component.Unstructurable.
func (s *ShopSpec) ToUnstructured() map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		panic(err) // it has only fields of JSON
	}
	return out
}

// GetSpec implements component.Component.
func (s *Shop) GetSpec() component.Unstructurable { return &s.Spec }

// GetStatus implements component.Component.
func (s *Shop) GetStatus() *component.Status { return &s.Status }

// endregion: kind

// DeepCopyObject implements runtime.Object. That of a real kind is generated.
func (s *Shop) DeepCopyObject() runtime.Object { c := *s; return &c }

// region: controller

// newShops makes the controller of an operator that was built with component-operator-runtime.
func newShops(manifests fs.FS) (*component.Reconciler[*Shop], error) {
	chart, err := helm.NewGenerator(manifests, "chart", helm.Options{})
	if err != nil {
		return nil, err
	}
	values, err := templates.NewParameters(manifests, "values.yaml")
	if err != nil {
		return nil, err
	}
	generator := transform.New(chart).
		WithParameterTransformer(values).
		WithObjectTransformer(kustomize.Transformer{Overlay: types.Kustomization{
			Images: []types.Image{{Name: "example.org/shop", NewName: "mirror.example.org/shop"}},
		}})
	name := "shops.example.org"
	return component.NewReconciler[*Shop](name, generator, component.ReconcilerOptions{Finalizer: &name}).
		WithPreDeleteHook(func(context.Context, client.Client, *Shop) error { return nil }), nil
}

// endregion: controller

// An operator that was built with component-operator-runtime keeps its kind, its chart and its hooks.
func ExampleTransformable() {
	r, err := newShops(fstest.MapFS{
		"values.yaml":       {Data: []byte("image: example.org/shop:{{ .version }}")},
		"chart/Chart.yaml":  {Data: []byte("{apiVersion: v2, name: shop, version: 1.0.0}")},
		"chart/values.yaml": {Data: []byte("{}")},
	})
	if err != nil {
		panic(err)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Shop"}, &Shop{})
	fmt.Println(r.GroupVersionKind(scheme))
	// Output:
	// example.org/v1, Kind=Shop <nil>
}

package templates_test

import (
	"context"
	"embed"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/templates"
)

// region: renderer

// manifests are the templates of a shop.
//
//go:embed all:testdata/shop
var manifests embed.FS // all: has the files whose names begin with _

// shops returns the renderer of shops, which is for component.New.
func shops() (component.Renderer[*Shop], error) {
	g, err := templates.NewGenerator(manifests, "testdata/shop", templates.Options{})
	if err != nil {
		return nil, err
	}
	return templates.NewRenderer(g, func(s *Shop) (ShopSpec, error) { return s.Spec, nil }), nil
}

// endregion: renderer

// Shop is a kind of components.
type Shop struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   ShopSpec
	Status component.Status
}

// ShopSpec is the spec of a Shop, and the data of its templates.
type ShopSpec struct {
	Servers int64
	Version string
	TLS     bool
}

// GetStatus implements component.Object.
func (s *Shop) GetStatus() *component.Status { return &s.Status }

// DeepCopyObject implements runtime.Object. That of a real kind is generated.
func (s *Shop) DeepCopyObject() runtime.Object { c := *s; return &c }

// An operator embeds a folder of templates. Their data is the spec of a component.
func ExampleNewRenderer() {
	renderer, err := shops()
	if err != nil {
		panic(err)
	}
	set, err := renderer.Render(context.Background(), component.RenderRequest[*Shop]{
		Component:      &Shop{Spec: ShopSpec{Servers: 3, Version: "2.0.0", TLS: true}},
		NamespacedName: ktypes.NamespacedName{Namespace: "eu", Name: "books"},
	})
	if err != nil {
		panic(err)
	}
	for _, o := range set.Objects() {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
	}
	// Output:
	// Deployment books
	// Service books-tls
	// ConfigMap books
}

package kustomize_test

import (
	"context"
	"embed"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// region: renderer

// manifests are the kustomization of a shop and its parts.
//
//go:embed testdata/shop
var manifests embed.FS

// setShop sets what is special about a shop.
func setShop(s *Shop, overlay *types.Kustomization) error {
	overlay.Replicas = []types.Replica{{Name: "server", Count: s.Spec.Servers}}
	overlay.Images = []types.Image{{Name: "registry.example.org/shop/server", NewTag: s.Spec.Version}}
	if s.Spec.TLS {
		overlay.Components = []string{"testdata/shop/components/tls"}
	}
	return nil
}

// shops returns the renderer of shops, which is for component.New.
func shops() (component.Renderer[*Shop], error) {
	g, err := kustomize.NewGenerator(manifests, "testdata/shop/base", kustomize.Options{Namespace: true, NamePrefix: true})
	if err != nil {
		return nil, err
	}
	return kustomize.NewRenderer(g, setShop), nil
}

// endregion: renderer

// Shop is a kind of components.
type Shop struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   ShopSpec
	Status component.Status
}

// ShopSpec is the spec of a Shop.
type ShopSpec struct {
	Servers int64
	Version string
	TLS     bool
}

// GetStatus implements component.Object.
func (s *Shop) GetStatus() *component.Status { return &s.Status }

// DeepCopyObject implements runtime.Object. That of a real kind is generated.
func (s *Shop) DeepCopyObject() runtime.Object { c := *s; return &c }

// An operator embeds a kustomization, and sets what is special about a component in an overlay over it.
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
	objects, err := set.Annotated("shops.example.org", nil)
	if err != nil {
		panic(err)
	}
	for _, o := range objects {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
	}
	// Output:
	// ServiceAccount eu books-server
	// ClusterRole  books-shop-server
	// ClusterRoleBinding  books-shop-server
	// ConfigMap eu books-settings
	// Secret eu books-tls-mdtb5bd474
	// Service eu books-server
	// Deployment eu books-server
}

// A test of a kustomization needs no component and no API server.
func ExampleGenerator_Render() {
	g, err := kustomize.NewGenerator(manifests, "testdata/shop/base", kustomize.Options{})
	if err != nil {
		panic(err)
	}
	overlay := types.Kustomization{}
	if err := setShop(&Shop{Spec: ShopSpec{Servers: 2}}, &overlay); err != nil {
		panic(err)
	}
	set, err := g.Render(kustomize.Build{Overlay: overlay})
	if err != nil {
		panic(err)
	}
	objects, err := set.Annotated("shops.example.org", nil)
	if err != nil {
		panic(err)
	}
	for _, o := range objects {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "Deployment" {
			fmt.Println(unstructured.NestedInt64(u.Object, "spec", "replicas"))
		}
	}
	// Output:
	// 2 true <nil>
}

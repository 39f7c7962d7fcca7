package kustomize_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/kustomize"
)

// chart stands for the renderer of a chart, helm.NewRenderer.
func chart() component.Renderer[*Shop] {
	return component.RenderFunc[*Shop](func(context.Context, component.RenderRequest[*Shop]) (component.Set, error) {
		server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "server"}}
		server.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "example.org/shop:1"}}
		return component.Objects(server), nil
	})
}

// region: chain

// mirrored takes the images of a chart from a mirror, and adds a label to what it renders.
func mirrored() component.Renderer[*Shop] {
	return component.Chain(chart(), kustomize.Transform(func(s *Shop, overlay *types.Kustomization) error {
		overlay.Images = []types.Image{{Name: "example.org/shop", NewName: "mirror.example.org/shop", NewTag: s.Spec.Version}}
		overlay.Labels = []types.Label{{Pairs: map[string]string{"team": "shop"}}}
		return nil
	}))
}

// endregion: chain

// An overlay changes what another renderer returns, such as a chart that has no value for it.
func ExampleTransform() {
	set, err := mirrored().Render(context.Background(), component.RenderRequest[*Shop]{Component: &Shop{Spec: ShopSpec{Version: "2"}}})
	if err != nil {
		panic(err)
	}
	server, _ := set.Objects()[0].(*unstructured.Unstructured)
	containers, _, _ := unstructured.NestedSlice(server.Object, "spec", "template", "spec", "containers")
	fmt.Println(containers, server.GetLabels())
	// Output:
	// [map[image:mirror.example.org/shop:2 name:server resources:map[]]] map[team:shop]
}

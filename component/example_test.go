package component_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
)

// region: renderer

// page renders a ConfigMap, and a Secret that is applied after it.
func page(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
	var s component.Set
	text := s.Add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		Data:       map[string]string{"title": "Page of " + r.Component.Name},
	})
	s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}).After(text)
	return s, nil
}

// endregion: renderer

// A renderer is a function from a component to its dependents. The controller needs the kinds of the
// dependents for the role of the operator.
func ExampleNew() {
	c := component.New(component.RenderFunc[*bundle.Bundle](page), component.Options[*bundle.Bundle]{
		Name: "pages.example.org",
		Kinds: []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		},
		Timeout: 5 * time.Minute,
	})
	scheme := runtime.NewScheme()
	if err := bundle.AddToScheme(scheme); err != nil {
		panic(err)
	}
	needs, err := c.Needs(scheme)
	for _, need := range needs {
		if need.Kind == "Secret" {
			fmt.Println(need.Kind, need.Verbs)
		}
	}
	fmt.Println(err)
	// Output:
	// Secret [get list watch create patch update delete]
	// <nil>
}

// region: generator

// pages is a generator: it returns a ConfigMap for the parameters of a component.
type pages struct{}

// Generate implements component.Generator.
func (pages) Generate(_ context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	title, _ := parameters.ToUnstructured()["title"].(string)
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"title": title},
	}}, nil
}

// endregion: generator

// A generator and hooks of component-operator-runtime work as they are. In a kubebuilder project,
// SetupWithManager(mgr) is all that follows.
func ExampleNewReconciler() {
	r := component.NewReconciler[*product.Product]("pages.example.org", pages{}, component.ReconcilerOptions{
		CreateMissingNamespaces: new(false),
	}).WithPostReconcileHook(func(_ context.Context, _ client.Client, p *product.Product) error {
		p.Status.Note = "the page is up"
		return nil
	})
	scheme := runtime.NewScheme()
	if err := product.AddToScheme(scheme); err != nil {
		panic(err)
	}
	fmt.Println(r.GroupVersionKind(scheme))
	// Output:
	// products.trimtab.dev/v1, Kind=Product <nil>
}

package prune

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestFenceDown: an object that somebody has put in the place of a fence stays, and those of the fence go.
func TestFenceDown(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	admin := testenv.Client(t, cfg, apiextensionsv1.AddToScheme)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := admin.Get(t.Context(), types.NamespacedName{Name: "bundles.bundles.trimtab.dev"}, crd); err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(crd.Name)
	definition.SetUID(crd.UID)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	c, err := apply.New(cfg, httpClient, mapper, "op")
	if err != nil {
		t.Fatal(err)
	}
	f := Fence{Client: c, Operator: "fence-test", Definition: definition, Type: Type{}}
	ours, theirs := f.binding(), f.binding()
	theirs.SetOwnerReferences(nil)
	exists := func() bool {
		t.Helper()
		live := f.binding()
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(live), live)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), f.binding()) })
	for _, step := range []struct {
		made *unstructured.Unstructured
		left bool
	}{{ours, false}, {theirs, true}} {
		if err := admin.Create(t.Context(), step.made); err != nil {
			t.Fatal(err)
		}
		if err := f.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exists() != step.left {
			t.Errorf("the object with owners %v is left: %t", step.made.GetOwnerReferences(), !step.left)
		}
	}
}

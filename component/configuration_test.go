package component_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestNoPass: outside a pass there is nothing to ask for.
func TestNoPass(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(context.Context) error{
		"client":    func(ctx context.Context) error { _, err := component.ClientFromContext(ctx); return err },
		"local":     func(ctx context.Context) error { _, err := component.LocalClientFromContext(ctx); return err },
		"name":      func(ctx context.Context) error { _, err := component.ReconcilerNameFromContext(ctx); return err },
		"component": func(ctx context.Context) error { _, err := component.ComponentFromContext(ctx); return err },
		"its name":  func(ctx context.Context) error { _, err := component.ComponentNameFromContext(ctx); return err },
		"namespace": func(ctx context.Context) error { _, err := component.ComponentNamespaceFromContext(ctx); return err },
	} {
		if ask(t.Context()) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestMissingNamespaces: namespaces of dependents are created unless the option says otherwise.
func TestMissingNamespaces(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]*bool{"nil": nil, "true": new(true), "false": new(false)} {
		t.Run("004-32 "+name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.options.CreateMissingNamespaces = create
			s.start()
			elsewhere := configMap("far", "1")
			elsewhere.Namespace = s.namespace + "-new"
			s.create(product.Spec{}, configMap("near", "1"), elsewhere)
			if name == "false" {
				p := s.is("Error", "Error")
				if want := elsewhere.Namespace; !strings.Contains(p.Status.Message, want) {
					t.Errorf("message %q does not name %s", p.Status.Message, want)
				}
				if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(s.configMap("near")), &corev1.ConfigMap{}); err != nil {
					t.Errorf("the other object of the wave: %v", err)
				}
				s.delete()
				return
			}
			p := s.is("Ready", "Ready")
			if len(p.Status.Inventory) != 2 {
				t.Errorf("inventory %v, want two", p.Status.Inventory)
			}
			s.delete()
			testenv.Gone(t, s.admin, s.named("a"), "deleted")
			ns := &corev1.Namespace{}
			if err := s.admin.Get(t.Context(), client.ObjectKey{Name: elsewhere.Namespace}, ns); err != nil || ns.DeletionTimestamp != nil {
				t.Errorf("the namespace: %v", err)
			}
		})
	}
}

// TestOptions: what is wrong with the options is found before anything runs.
func TestOptions(t *testing.T) {
	t.Parallel()
	for want, policies := range map[string]api.Policies{
		`the adoption policy "x" does not exist; use one of never, if-unowned, always`:                        {AdoptionPolicy: "x"},
		`the reconcile policy "x" does not exist; use one of on-object-change`:                                {ReconcilePolicy: "x"},
		`the update policy "x" does not exist; use one of replace, ssa-merge, ssa-override, recreate`:         {UpdatePolicy: "x"},
		`the delete policy "x" does not exist; use one of delete, orphan, orphan-on-apply, orphan-on-delete`:  {DeletePolicy: "x"},
		`the conflict policy "x" does not exist; use one of force, fail`:                                      {ConflictPolicy: "x"},
		`the immutable policy "x" does not exist; use one of fail, recreate`:                                  {ImmutablePolicy: "x"},
		`the mode "x" does not exist; use one of full, detect-only, suspended`:                                {Mode: "x"},
		`the conflict policy "fail" needs server-side apply; use the update policy ssa-merge or ssa-override`: {ConflictPolicy: "fail", UpdatePolicy: "replace"},
		`component: the policies in the options: the adoption policy "x" does not exist`:                      {AdoptionPolicy: "x"},
		"": {AdoptionPolicy: "never", ReconcilePolicy: "once", UpdatePolicy: "recreate", DeletePolicy: "orphan", ConflictPolicy: "fail", ImmutablePolicy: "recreate", Mode: "detect-only"},
	} {
		_, err := component.New(component.RenderFunc[*bundle.Bundle](render), options{Name: "op.test", Policies: policies}).Needs(scheme(t, bundle.AddToScheme))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: error %v, want %q", policies, err, want)
		}
	}
	for _, o := range []component.ReconcilerOptions{{AdoptionPolicy: new(component.AdoptionPolicy("x"))}, {UpdatePolicy: new(component.UpdatePolicy("x"))}} {
		_, err := component.NewReconciler[*product.Product]("op.test", &generator{}, o).Needs(scheme(t, product.AddToScheme))
		if err == nil || !strings.Contains(err.Error(), `"x" does not exist; use one of`) {
			t.Errorf("error %v", err)
		}
	}
}

// scheme returns a scheme with some types.
func scheme(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, f := range add {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

package scenarios

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
)

// products is the name of the operator of Products.
const products = "products.trimtab.dev"

// Hooks returns the scenario of a component with a generator and all hooks, each of which can panic and
// hang.
func Hooks() []fault.Scenario {
	p := &product.Product{ObjectMeta: named("a", nil)}
	p.Spec.Objects = dependentsOf(products, "one=1@0")
	return []fault.Scenario{{
		Name: "component-hooks", Operator: componentProcess(productOperator, "get products.products.trimtab.dev", "list products.products.trimtab.dev", "patch configmaps", "patch secrets",
			"get configmaps", "get secrets", "list secrets", "impersonate serviceaccounts"),
		Steps: []fault.Step{
			fault.Create(p).Becomes(p, api.ConditionReady).Expecting(configMapsOf(products, "one=1")),
			fault.Delete(p).Gone(p).Expecting(configMapsOf(products)),
		},
		Foreign: sometimes(),
	}}
}

// hooked is a generator whose operator comes to the points at which its code can panic or hang.
type hooked struct{ env *fault.Env }

// Generate implements component.Generator.
func (h hooked) Generate(ctx context.Context, _, _ string, _ component.Unstructurable) ([]client.Object, error) {
	h.env.Author("Generate")
	obj, err := component.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	p, _ := obj.(*product.Product)
	return product.Render(&p.Spec)
}

// hook returns a hook that changes the status before and after it comes to its point: of a call that does
// not return, neither must be seen.
func (h hooked) hook(name string) component.HookFunc[*product.Product] {
	return func(_ context.Context, _ client.Client, p *product.Product) error {
		p.Status.Note = "in " + name
		h.env.Author(name)
		p.Status.Note = ""
		return nil
	}
}

func productOperator(env *fault.Env) operator.Options {
	return operator.Options{
		Name: "products", AddToScheme: product.AddToScheme, CRDs: product.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			h := hooked{env}
			r := component.NewReconciler[*product.Product](products, h, component.ReconcilerOptions{
				Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
			})
			r.WithPostReadHook(h.hook("post-read")).WithPreReconcileHook(h.hook("pre-reconcile")).WithPostReconcileHook(h.hook("post-reconcile"))
			r.WithPreDeleteHook(h.hook("pre-delete")).WithPostDeleteHook(h.hook("post-delete"))
			return []operator.Controller{r}, nil
		},
	}
}

package specwrite

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	shop.Spec.Size = 1             // want "the reconciler changes the spec of Shop"
	shop.Spec.Options["a"] = "b"   // want "changes the spec of Shop"
	delete(shop.Spec.Options, "a") // want "changes the spec of Shop"
	r.complete(shop)
	wanted := shop.DeepCopy()
	wanted.Spec.Size = 2
	r.shrink(wanted)
	shop.Status.Phase = "small"
	r.grow(ctx, req)
	return ctrl.Result{}, nil
}

func (r reconciler) grow(ctx context.Context, req ctrl.Request) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return
	}
	shop = shop.DeepCopy()
	shop.Spec.Size = 2
}

func (reconciler) complete(shop *api.Shop) { shop.Spec.Size++ } // want "changes the spec of Shop"

func (reconciler) shrink(shop *api.Shop) { shop.Spec.Size-- }

// Default is a webhook, which may.
func (reconciler) Default(_ context.Context, shop *api.Shop) error {
	shop.Spec.Size = 1
	return nil
}

type looped struct{}

func (looped) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	r.Obj.Spec.Size = 4 // want "changes the spec of Shop"
	shop := r.Obj
	shop.Spec.Size = 5 // want "changes the spec of Shop"
	r.Obj.Status.Phase = "x"
	return loop.Done()
}

// maker creates Stores, so that their spec is its own.
type maker struct{ client.Client }

func (r maker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	store := &api.Store{}
	if err := r.Get(ctx, req.NamespacedName, store); err != nil {
		return ctrl.Result{}, r.Create(ctx, store)
	}
	store.Spec.Size = 1
	return ctrl.Result{}, r.Update(ctx, store)
}

package readback

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

type reconciler struct {
	client.Client
	APIReader client.Reader
}

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if shop.Annotations == nil {
		if err := r.Update(ctx, shop); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Get(ctx, req.NamespacedName, shop); err != nil { // want "this may read the Shop as it was before the write above"
			return ctrl.Result{}, err
		}
	}
	if err := r.Status().Patch(ctx, shop, nil); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{}, r.Get(ctx, req.NamespacedName, shop)
		}
		return ctrl.Result{}, err
	}
	if err := r.APIReader.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, err
	}
	return r.returns(ctx, req, shop)
}

func (r reconciler) returns(ctx context.Context, req ctrl.Request, shop *api.Shop) (ctrl.Result, error) {
	if shop.Labels == nil {
		return ctrl.Result{}, r.Update(ctx, shop)
	}
	for range 3 {
		if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Update(ctx, shop); err == nil {
			break
		}
	}
	return ctrl.Result{}, nil
}

// Package controller reconciles Shops, and may say so in their status.
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/lint/testdata/statusowner/helper"
)

type reconciler struct{ client.Client }

// SetupWithManager registers a controller for Shops.
func (r *reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Shop{}).Complete(r)
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	shop.Status.Phase = "ready"
	shop.SetPhase("ready")
	if err := r.Status().Apply(ctx, &api.ShopApplyConfiguration{}); err != nil {
		return ctrl.Result{}, err
	}
	helper.Indirectly(shop)
	pod := &corev1.Pod{}
	if err := r.Get(ctx, req.NamespacedName, pod); err != nil {
		return ctrl.Result{}, err
	}
	pod.Status.Message = "not a custom resource"
	database := &api.Database{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: "db"}, database); err != nil {
		return ctrl.Result{}, err
	}
	database.Status.Phase = "mine" // want "this changes the status of Database"
	if err := r.Status().Update(ctx, shop); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, database) // want "this writes the status of Database"
}

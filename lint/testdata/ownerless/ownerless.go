package ownerless

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "orphan"}}
	if err := r.Create(ctx, orphan); err != nil { // want "this creates a ConfigMap without an owner reference"
		return ctrl.Result{}, err
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "owned"}}
	if err := controllerutil.SetControllerReference(shop, owned, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, owned); err != nil {
		return ctrl.Result{}, err
	}
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "a"}}
	if err := r.Create(ctx, elsewhere); err != nil {
		return ctrl.Result{}, err
	}
	literal := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, OwnerReferences: shop.OwnerReferences}}
	if err := r.Create(ctx, literal); err != nil {
		return ctrl.Result{}, err
	}
	passed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace}}
	r.adopt(shop, passed)
	return ctrl.Result{}, r.Create(ctx, passed)
}

func (reconciler) adopt(shop *api.Shop, child client.Object) { child.SetOwnerReferences(nil) }

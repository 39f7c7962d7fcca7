// Package controller watches Secrets.
package controller

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

// Setup registers it.
func Setup(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Shop{}).Owns(&corev1.Secret{}).Owns(&corev1.ConfigMap{}, builder.OnlyMetadata).Complete(r)
}

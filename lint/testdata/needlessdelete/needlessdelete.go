package needlessdelete

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

func settings(*api.Shop) *corev1.ConfigMap { return &corev1.ConfigMap{} }
func role(*api.Shop) *rbacv1.ClusterRole   { return &rbacv1.ClusterRole{} }

var _ = children.Of(children.Named("settings", settings), children.Named("role", role).Elsewhere())

var _ = loop.Options[*api.Shop]{Sources: []trigger.Source[*api.Shop]{trigger.Owned[*api.Shop]{Of: &corev1.Service{}}}}

type reconciler struct{}

func (reconciler) Reconcile(ctx context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	gone := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: r.Obj.Namespace, Name: "old"}}
	return loop.FromError(r.Client().Delete(ctx, gone))
}

func (reconciler) Cleanup(ctx context.Context, r *loop.Run[*api.Shop]) loop.CleanupOutcome {
	named := metav1.ObjectMeta{Namespace: r.Obj.Namespace, Name: r.Obj.Name}
	_ = r.Client().Delete(ctx, &corev1.ConfigMap{ObjectMeta: named}) // want "garbage collection deletes each ConfigMap that belongs to the object"
	service := &corev1.Service{ObjectMeta: named}
	_ = r.Client().Delete(ctx, service) // want "garbage collection deletes each Service that belongs to the object"
	//trimtab:allow needlessdelete clients must not find it while the rest is cleaned up
	_ = r.Client().Delete(ctx, service)
	_ = r.Client().Delete(ctx, &corev1.Secret{ObjectMeta: named})
	_ = r.Client().Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: named})
	return loop.CleanedUp()
}

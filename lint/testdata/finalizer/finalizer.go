package finalizer

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Database{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	controllerutil.AddFinalizer(shop, "example.org/a") // want "nothing in this package removes this finalizer, so no Database can be deleted"
	controllerutil.AddFinalizer(&corev1.Pod{}, "example.org/a")
	return ctrl.Result{}, nil
}

type looped struct{}

func (looped) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	controllerutil.AddFinalizer(r.Obj, "example.org/b") // want "the loop adds and removes the finalizer of Shop"
	return loop.Done()
}

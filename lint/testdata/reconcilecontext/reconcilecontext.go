package reconcilecontext

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer func() { r.report(context.Background()) }()
	go r.report(context.TODO())
	if err := r.Get(context.Background(), req.NamespacedName, &api.Shop{}); err != nil { // want "context.Background in a reconciliation has neither its deadline nor its logger"
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.report(ctx)
	return ctrl.Result{}, nil
}

func (r reconciler) report(ctx context.Context) {
	_ = r.List(context.TODO(), &api.ShopList{}) // want "context.TODO in a reconciliation"
	_ = r.List(context.WithoutCancel(ctx), &api.ShopList{})
}

func setup(ctx context.Context) error {
	<-ctx.Done()
	return context.Background().Err()
}

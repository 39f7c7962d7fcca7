package requeueerror

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

type reconciler struct{ client.Client }

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &api.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{RequeueAfter: time.Second}, client.IgnoreNotFound(err)
	}
	if err := r.Update(ctx, shop); err != nil {
		return ctrl.Result{RequeueAfter: time.Second}, err // want "return the error alone, or the Result and nil"
	}
	if err := r.Update(ctx, shop); err != nil {
		err = r.Status().Update(ctx, shop) // which says what failed
		return ctrl.Result{RequeueAfter: time.Second}, err
	}
	if err := r.Update(ctx, shop); err != nil {
		if err = r.Get(ctx, req.NamespacedName, shop); err == nil {
			return ctrl.Result{RequeueAfter: time.Second}, err
		}
	}
	err := r.Update(ctx, shop)
	if err != nil && shop.Name != "" {
		return ctrl.Result{RequeueAfter: 0}, err
	}
	switch shop.Name {
	case "a":
		return ctrl.Result{Requeue: true}, fmt.Errorf("a: %w", err) // want "the Result asks for another call"
	case "b":
		return ctrl.Result{}, errors.New("b")
	}
	return ctrl.Result{RequeueAfter: time.Second}, err
}

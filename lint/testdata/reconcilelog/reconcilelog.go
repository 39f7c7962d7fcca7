package reconcilelog

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/logs"
)

var logger = ctrl.Log.WithName("shops")

type Shops struct {
	Log logr.Logger // want "a logger in a field of Shops is shared by all its reconciliations"
}

func (r *Shops) GetLogger(ctx context.Context) logr.Logger {
	return log.FromContext(ctx).WithName("Controllers").WithName("Shops")
}

func (r *Shops) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	fmt.Println("reconciling") // want "fmt.Println in a reconciliation goes to standard output"
	klog.Info("reconciling")   // want "klog in a reconciliation has neither the controller nor the object"
	klog.V(2).Info("still")    // want "klog in a reconciliation"
	klog.Warningln("still")    // want "klog in a reconciliation"
	r.Log.Info("reconciling")
	logger.Info("reconciling")   // want "the logger logger belongs to the package"
	ctrl.Log.Info("reconciling") // want "the logger Log belongs to the package"
	r.GetLogger(ctx).Info(fmt.Sprint("reconciling"))
	return ctrl.Result{}, nil
}

func (r *Shops) SetupWithManager() {
	logger.Info("starting")
	fmt.Println("starting")
}

type Good struct{}

func (r *Good) GetLogger(ctx context.Context) logr.Logger { return logs.For(ctx, r) }

func (r *Good) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

type Misnamed struct{}

func (r *Misnamed) GetLogger(ctx context.Context) logr.Logger { // want "GetLogger of Misnamed does not follow the convention"
	return log.FromContext(ctx).WithName("Controllers").WithName("Shops")
}

func (r *Misnamed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

type onlyForPredicates struct{ log logr.Logger }

func (r *onlyForPredicates) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	keep(r.log)
	return ctrl.Result{}, nil
}

func keep(logr.Logger) {}

type notAReconciler struct{ Log logr.Logger }

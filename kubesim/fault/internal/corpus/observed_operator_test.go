package corpus

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Observed re-creates what SAP's component-operator-runtime does on every reconcile
// (pkg/component/reconciler.go): it sets status.lastObservedAt to now, so the status is
// always another one and is always written, although nothing has changed. Every look at a
// cluster at rest costs a write, an event to all watchers, and in etcd a revision.
//
// Fixed, it writes the time only together with something that is new.
type Observed struct {
	client.Client

	Fixed bool
}

// SetupObserved sets up an Observed.
func SetupObserved(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		r := &Observed{Client: mgr.GetClient(), Fixed: fixed}
		return ctrl.NewControllerManagedBy(mgr).
			For(&Item{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Owns(&corev1.ConfigMap{}).Complete(r)
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Observed) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: item.Name, Namespace: item.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, c, func() error {
		c.Data = map[string]string{"text": item.Spec.Text}
		return controllerutil.SetControllerReference(item, c, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := item.Status.deepCopy()
	item.Status.ObservedGeneration = item.Generation
	meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: item.Generation,
	})
	if r.Fixed && equality.Semantic.DeepEqual(before, item.Status) {
		return ctrl.Result{RequeueAfter: 10 * time.Minute}, nil
	}
	item.Status.LastObservedAt = new(metav1.Now())
	return ctrl.Result{RequeueAfter: 10 * time.Minute}, r.Status().Update(ctx, item)
}

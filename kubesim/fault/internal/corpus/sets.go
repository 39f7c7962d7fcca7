package corpus

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Sets re-creates kubernetes-sigs/cluster-api#13649: the MachineDeployment controller looks
// in its cache for a MachineSet that fits, and creates one under a generated name if it
// sees none. The set that it has just made was not in the cache yet when it looked again
// (there, because a wait for the cache had timed out), so it made three sets for one
// deployment.
//
// Fixed, it asks the API server itself before it creates.
type Sets struct {
	client.Client

	Live  client.Reader
	Fixed bool
}

// SetupSets sets up a Sets: Items are the deployments, Parts their sets.
func SetupSets(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		r := &Sets{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Fixed: fixed}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&Part{}).Complete(r)
	}
}

const revision = "corpus.example.com/revision"

// Reconcile implements reconcile.Reconciler.
func (r *Sets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if item.Labels[revision] == "" {
		item.Labels = map[string]string{revision: "1"}
		if err := r.Update(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	set, err := r.find(ctx, r.Client, item)
	if err == nil && set == nil && r.Fixed {
		set, err = r.find(ctx, r.Live, item)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if set == nil {
		if err := r.create(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	changed := meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: item.Generation,
	})
	if !changed {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, item)
}

// find returns the item's set of its present size, as a reader sees it.
func (r *Sets) find(ctx context.Context, reader client.Reader, item *Item) (*Part, error) {
	sets := &PartList{}
	if err := reader.List(ctx, sets, client.InNamespace(item.Namespace)); err != nil {
		return nil, err
	}
	for i := range sets.Items {
		if s := &sets.Items[i]; metav1.IsControlledBy(s, item) && s.Spec.Text == item.Spec.Text {
			return s, nil
		}
	}
	return nil, nil
}

func (r *Sets) create(ctx context.Context, item *Item) error {
	set := &Part{
		ObjectMeta: metav1.ObjectMeta{GenerateName: item.Name + "-", Namespace: item.Namespace},
		Spec:       Spec{Size: item.Spec.Size, Text: item.Spec.Text},
	}
	if err := controllerutil.SetControllerReference(item, set, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, set); err != nil {
		return fmt.Errorf("create set: %w", err)
	}
	return nil
}

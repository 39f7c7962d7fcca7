package corpus

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Expand re-creates rabbitmq/cluster-operator#782. To enlarge a volume it deletes the stateful
// set, enlarges the volume claim, and creates the set again with the new size. Whether there
// is anything to enlarge it tells by the size in the set. Killed after the set is deleted,
// it finds no set, makes one with the new size, and the claim keeps its old one for ever.
//
// Fixed, it holds the claim itself against the wanted size.
type Expand struct {
	client.Client

	Fixed bool
}

// SetupExpand sets up an Expand: Items are clusters, and of each there are two Parts, NAME-set
// and NAME-claim.
func SetupExpand(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		r := &Expand{Client: mgr.GetClient(), Fixed: fixed}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&Part{}).Complete(r)
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Expand) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	set, err := r.part(ctx, item, "-set")
	if err != nil {
		return ctrl.Result{}, err
	}
	claim, err := r.part(ctx, item, "-claim")
	if err != nil {
		return ctrl.Result{}, err
	}
	if set, err = r.expand(ctx, item, set, claim); err != nil {
		return ctrl.Result{}, err
	}
	if claim == nil {
		err = r.create(ctx, item, "-claim")
	}
	if err == nil && set == nil {
		err = r.create(ctx, item, "-set")
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// expand makes the claim larger, and returns the set if it is left.
func (r *Expand) expand(ctx context.Context, item *Item, set, claim *Part) (*Part, error) {
	small := set != nil && set.Spec.Size < item.Spec.Size
	if small {
		if err := r.Delete(ctx, set, client.Preconditions{UID: &set.UID}); err != nil {
			return nil, err
		}
		set = nil
	}
	if r.Fixed {
		small = claim != nil && claim.Spec.Size < item.Spec.Size
	}
	if !small || claim == nil {
		return set, nil
	}
	claim.Spec.Size = item.Spec.Size
	return set, r.Update(ctx, claim)
}

// part returns a part of an item, nil if there is none.
func (r *Expand) part(ctx context.Context, item *Item, suffix string) (*Part, error) {
	p := &Part{}
	err := r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name + suffix}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err == nil && !metav1.IsControlledBy(p, item) {
		return nil, apierrors.NewConflict(groupVersion().WithResource("parts").GroupResource(), p.Name, nil)
	}
	return p, err
}

// create makes a part of an item.
func (r *Expand) create(ctx context.Context, item *Item, suffix string) error {
	p := &Part{
		ObjectMeta: metav1.ObjectMeta{Name: item.Name + suffix, Namespace: item.Namespace},
		Spec:       Spec{Size: item.Spec.Size},
	}
	if err := controllerutil.SetControllerReference(item, p, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, p)
}

func (r *Expand) report(ctx context.Context, item *Item) error {
	before := item.Status.deepCopy()
	item.Status.ObservedGeneration = item.Generation
	meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: item.Generation,
	})
	if equality.Semantic.DeepEqual(before, item.Status) {
		return nil
	}
	return r.Status().Update(ctx, item)
}

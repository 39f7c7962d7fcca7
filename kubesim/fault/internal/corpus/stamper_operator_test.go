package corpus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Stamper: what it takes others for.
const (
	ReplacesAnnotations Bug = "replaces all annotations, whatever was stored meanwhile" // I10
	ReplacesConditions  Bug = "replaces the list of conditions with a merge patch"      // I10
	GivesUp             Bug = "leaves it at five conflicts"                             // I1
)

// Stamper writes the size of each Item into an annotation of it, and reports that. It sees nothing of what others do
// besides the spec. With [ReplacesConditions] it re-creates issue 6317 of cloudnative-pg/cloudnative-pg: a JSON merge
// patch without a version replaces the whole list of conditions, and so takes away what another process has written
// there since the object was read. Its fix adds the version to the patch, and tries again after a conflict.
type Stamper struct {
	kit

	Live client.Reader
	Bug  Bug
}

// SetupStamper sets up a Stamper with a bug.
func SetupStamper(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		r := &Stamper{kit{mgr.GetClient()}, mgr.GetAPIReader(), bug}
		return ctrl.NewControllerManagedBy(mgr).
			For(&Item{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Complete(r)
	}
}

// SetupConditions sets up a Stamper with the bug of cloudnative-pg, or without.
func SetupConditions(fixed bool) func(ctrl.Manager, *fault.Env) error {
	if fixed {
		return SetupStamper(NoBug)
	}
	return SetupStamper(ReplacesConditions)
}

const stamp = "corpus.example.com/size"

// Reconcile implements reconcile.Reconciler.
func (r *Stamper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	err = r.retried(ctx, item, func() error { return r.stamp(ctx, item) })
	if err == nil {
		err = r.retried(ctx, item, func() error { return r.say(ctx, item) })
	}
	if r.Bug == GivesUp && apierrors.IsConflict(err) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// stamp writes the annotation, unless it is there.
func (r *Stamper) stamp(ctx context.Context, item *Item) error {
	size := strconv.FormatInt(item.Spec.Size, 10)
	if item.Annotations[stamp] == size {
		return nil
	}
	annotate(item, stamp, size)
	if r.Bug != ReplacesAnnotations {
		return r.Update(ctx, item)
	}
	all, err := json.Marshal(item.Annotations)
	if err != nil {
		return err
	}
	return r.Patch(ctx, item, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations","value":%s}]`, all)))
}

// retried does something again after a conflict, with what is stored now.
func (r *Stamper) retried(ctx context.Context, item *Item, do func() error) error {
	again := false
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if again {
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(item), item); err != nil {
				return err
			}
		}
		again = true
		return do()
	})
}

// say writes that an item is ready, unless its status says so.
func (r *Stamper) say(ctx context.Context, item *Item) error {
	before := item.DeepCopy()
	item.Status.ObservedGeneration = item.Generation
	meta.SetStatusCondition(&item.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Stamped", ObservedGeneration: item.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, item.Status) {
		return nil
	}
	if r.Bug == ReplacesConditions {
		return r.Status().Patch(ctx, item, client.MergeFrom(before))
	}
	return r.Status().Patch(ctx, item, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

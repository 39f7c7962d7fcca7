package corpus

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Decommission re-creates Orange-OpenSource/casskop#370. It removes one node of a cluster in steps, and
// records the step: Ongoing while the node leaves, then Finalizing, in which it waits until the node's pod is
// gone, to delete its claim. That the step is Finalizing is recorded only after the set was made smaller.
// Killed in between, it still believes the node to be leaving, does not find its pod, and reports that as an
// error forever: the claim is left, and no later change is made.
//
// As published (pull request 377), the fix records Finalizing before the set is made smaller. Killed between these
// two, it waits forever for the end of a pod that nothing deletes. Fixed here, it makes the set smaller
// in step Finalizing, too.
type Decommission struct {
	kit

	// Early records Finalizing before the set is made smaller, and Again makes it smaller while it waits.
	Early, Again bool
}

// operation is the annotation with the step, as in "Ongoing a-pod-1". Casskop has it in the status.
const operation = "corpus.example.com/operation"

// SetupDecommission sets up a Decommission: Items are clusters of Size nodes, each with a Part NAME-set, of
// which the [SetController] makes the Parts NAME-pod-0 and NAME-claim-0, and so on.
func SetupDecommission(early, again bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Decommission{k, early, again} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Decommission) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	set, err := r.part(ctx, item, "-set")
	if err != nil {
		return ctrl.Result{}, err
	}
	if set == nil {
		if _, err := r.create(ctx, item, "-set", Spec{Size: item.Spec.Size}); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.report(ctx, item)
	}
	step, pod, _ := strings.Cut(item.Annotations[operation], " ")
	switch {
	case step == "Ongoing":
		return r.leave(ctx, item, set, pod)
	case step == "Finalizing":
		return r.finalize(ctx, item, set, pod)
	case set.Spec.Size > item.Spec.Size:
		pod := fmt.Sprintf("%s-pod-%d", item.Name, set.Spec.Size-1)
		return ctrl.Result{RequeueAfter: soon}, r.record(ctx, item, "Ongoing "+pod)
	case set.Spec.Size < item.Spec.Size:
		set.Spec.Size = item.Spec.Size
		if err := r.Update(ctx, set); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// leave ends the step in which a node leaves the cluster. It has left when the operator comes back.
func (r *Decommission) leave(ctx context.Context, item *Item, set *Part, pod string) (ctrl.Result, error) {
	if err := r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: pod}, &Part{}); err != nil {
		return ctrl.Result{}, fmt.Errorf("get the last pod: %w", err)
	}
	if r.Early {
		if err := r.record(ctx, item, "Finalizing "+pod); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.shrink(ctx, set, pod); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soon}, r.record(ctx, item, "Finalizing "+pod)
}

// shrink makes a set end before a pod, unless it does already.
func (r *Decommission) shrink(ctx context.Context, set *Part, pod string) error {
	n := ordinal(pod)
	if set.Spec.Size <= n {
		return nil
	}
	set.Spec.Size = n
	return r.Update(ctx, set)
}

// ordinal is the number at the end of a name, 0 if there is none.
func ordinal(name string) int64 {
	n, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64) // 0 with an error
	return n
}

// finalize deletes the claim of a node as soon as its pod is gone.
func (r *Decommission) finalize(ctx context.Context, item *Item, set *Part, pod string) (ctrl.Result, error) {
	err := r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: pod}, &Part{})
	if err == nil {
		if r.Again {
			err = r.shrink(ctx, set, pod)
		}
		return ctrl.Result{RequeueAfter: soon}, err
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	claim, err := r.part(ctx, item, strings.Replace(strings.TrimPrefix(pod, item.Name), "-pod-", "-claim-", 1))
	if err == nil && claim != nil {
		err = r.remove(ctx, claim)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.record(ctx, item, ""); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: soon}, r.report(ctx, item)
}

// record writes the step, unless it is written.
func (r *Decommission) record(ctx context.Context, item *Item, step string) error {
	if item.Annotations[operation] == step {
		return nil
	}
	annotate(item, operation, step)
	return r.Update(ctx, item)
}

// SetController is the controller of the Parts that are sets: it makes a pod and a claim for each of their
// nodes, and deletes pods that are too many. It deletes no claims, which have the labels of the set and, if they
// are owned, its owner.
func SetController(owned bool) fault.Actor {
	return forParts("set controller", func(ctx context.Context, c client.Client, set *Part) error {
		name, is := strings.CutSuffix(set.Name, "-set")
		if !is || !set.DeletionTimestamp.IsZero() {
			return nil
		}
		return scale(ctx, c, set, name, owned)
	})
}

// scale gives a set as many pods as it has nodes.
func scale(ctx context.Context, c client.Client, set *Part, name string, owned bool) error {
	const most = 3 // nodes that a set may have here
	for n := range int64(most) {
		pod := &Part{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-pod-%d", name, n)}}
		claim := &Part{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-claim-%d", name, n)}}
		if n >= set.Spec.Size {
			if err := client.IgnoreNotFound(c.Delete(ctx, pod)); err != nil {
				return err
			}
			continue
		}
		if err := controllerutil.SetControllerReference(set, pod, c.Scheme()); err != nil {
			return err
		}
		claim.Labels = set.Labels
		if owned {
			claim.OwnerReferences = set.OwnerReferences
		}
		for _, p := range []*Part{pod, claim} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(p), &Part{}); client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil {
				continue
			}
			if err := c.Create(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

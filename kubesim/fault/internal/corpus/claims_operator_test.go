package corpus

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Claims re-creates pravega/zookeeper-operator#312, and with it Orange-OpenSource/casskop#316, instaclustr/cassandra-operator#402
// and k8ssandra/cass-operator#118. When a cluster is deleted, it deletes all claims that bear the cluster's name. A
// process that starts with an old cache finds a former cluster of the same name, which is being deleted, and deletes
// the claims of the present one.
//
// Fixed, the claims are labelled with the UID of their cluster, and a delete names the claim that was found.
type Claims struct {
	kit

	Fixed bool
}

// clusterUID is the label of a set, and of its claims, with the UID of the Item.
const clusterUID = "corpus.example.com/cluster-uid"

// SetupClaims sets up a Claims: Items are clusters of Size nodes, each with a Part NAME-set, of which the [SetController]
// makes the pods and claims.
func SetupClaims(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Claims{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Claims) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, item)
	}
	if err := r.hold(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	set, err := r.part(ctx, item, "-set")
	if err != nil {
		return ctrl.Result{}, err
	}
	if set == nil {
		set = &Part{Spec: Spec{Size: item.Spec.Size}}
		set.Name, set.Labels = item.Name+"-set", map[string]string{clusterUID: string(item.UID)}
		if err := r.make(ctx, item, set); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// finalize deletes the claims of an item, and then its finalizer.
func (r *Claims) finalize(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	set, err := r.part(ctx, item, "-set")
	if err == nil && set != nil { // else its controller makes new claims
		err = r.remove(ctx, set)
	}
	if err != nil {
		return err
	}
	all := &PartList{}
	if err := r.List(ctx, all, client.InNamespace(item.Namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		p := &all.Items[i]
		if !strings.HasPrefix(p.Name, item.Name+"-claim-") || r.Fixed && p.Labels[clusterUID] != string(item.UID) {
			continue
		}
		if r.Fixed {
			err = r.remove(ctx, p)
		} else {
			err = client.IgnoreNotFound(r.Delete(ctx, p))
		}
		if err != nil {
			return err
		}
	}
	return r.letGo(ctx, item)
}

package corpus

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Revisions re-creates kubernetes-sigs/lws#732. It keeps the revision of an object under a key, which is a label of the object's
// leader. A user deletes the object and creates it again: the leader that it finds by name is that of the former object,
// which is being deleted. It creates a revision under that one's key, and under the same key another one as soon as the
// leader is gone. Both stay.
//
// Fixed, it waits until such a leader is gone. It also looks for a revision that an earlier attempt left before it
// creates one, which is another bug of the same operator.
type Revisions struct {
	kit

	Live client.Reader
	// Waits for a leader to be gone, and Reuses a revision that is left.
	Waits, Reuses bool
}

// revisionKey is the label of revisions and leaders.
const revisionKey = "corpus.example.com/revision-key"

// SetupRevisions sets up a Revisions: of each Item there are a Part NAME-leader, and Parts with other names that are its
// revisions.
func SetupRevisions(waits, reuses bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		return ofParts(mgr, &Revisions{kit{mgr.GetClient()}, mgr.GetAPIReader(), waits, reuses})
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Revisions) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	leader := &Part{}
	err = r.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name + "-leader"}, leader)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if r.Waits && leader.DeletionTimestamp != nil {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	key := leader.Labels[revisionKey]
	if err := r.keep(ctx, item, key); err != nil {
		return ctrl.Result{}, err
	}
	if apierrors.IsNotFound(err) {
		leader = &Part{ObjectMeta: metav1.ObjectMeta{
			Namespace: item.Namespace, Name: item.Name + "-leader", Labels: map[string]string{revisionKey: item.Spec.Text},
		}}
		if err = controllerutil.SetControllerReference(item, leader, r.Scheme()); err == nil {
			err = r.Create(ctx, leader)
		}
	} else if !metav1.IsControlledBy(leader, item) {
		err = apierrors.NewConflict(groupVersion().WithResource("parts").GroupResource(), leader.Name, nil)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// keep creates the revision of an item under the key of its leader, or of its own content if that has none,
// unless there is one.
func (r *Revisions) keep(ctx context.Context, item *Item, key string) error {
	all := &PartList{}
	var reader client.Reader = r
	if key == "" && r.Reuses {
		key, reader = item.Spec.Text, r.Live
	}
	if err := reader.List(ctx, all, client.InNamespace(item.Namespace)); err != nil {
		return err
	}
	for _, p := range all.Items {
		if metav1.IsControlledBy(&p, item) && p.GenerateName != "" && p.Labels[revisionKey] == key {
			return nil
		}
	}
	if key == "" {
		key = item.Spec.Text
	}
	rev := &Part{ObjectMeta: metav1.ObjectMeta{
		Namespace: item.Namespace, GenerateName: item.Name + "-", Labels: map[string]string{revisionKey: key},
	}}
	if err := controllerutil.SetControllerReference(item, rev, r.Scheme()); err != nil {
		return err
	}
	return r.Create(ctx, rev)
}

// SlowDeletion is a controller that lets Parts called leader exist for a while after they were deleted, as
// long as their pods end.
func SlowDeletion() fault.Actor {
	const pods = "corpus.example.com/pods"
	return fault.Actor{Name: "leader controller", Act: func(ctx context.Context, w *fault.World) error {
		all := &PartList{}
		if err := w.Client.List(ctx, all); err != nil {
			return err
		}
		for i := range all.Items {
			p := &all.Items[i]
			changed := false
			switch {
			case p.GenerateName != "":
			case p.DeletionTimestamp.IsZero():
				changed = controllerutil.AddFinalizer(p, pods)
			default:
				changed = controllerutil.RemoveFinalizer(p, pods)
			}
			if changed {
				if err := w.Client.Update(ctx, p); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

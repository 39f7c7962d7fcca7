package corpus

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	return ofParts(func(k kit, mgr ctrl.Manager) reconcile.Reconciler {
		return &Revisions{k, mgr.GetAPIReader(), waits, reuses}
	})
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
		err = r.make(ctx, item, &Part{ObjectMeta: metav1.ObjectMeta{Name: item.Name + "-leader", Labels: map[string]string{revisionKey: item.Spec.Text}}})
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
	var reader client.Reader = r
	if key == "" && r.Reuses {
		key, reader = item.Spec.Text, r.Live
	}
	all, err := partsOf(ctx, reader, item)
	is := func(p Part) bool { return p.GenerateName != "" && p.Labels[revisionKey] == key }
	if err != nil || slices.ContainsFunc(all, is) {
		return err
	}
	return r.make(ctx, item, &Part{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{revisionKey: cmp.Or(key, item.Spec.Text)}}})
}

// SlowDeletion is a controller that lets Parts called leader exist for a while after they were deleted, as
// long as their pods end.
func SlowDeletion() fault.Actor {
	return slowly("leader controller", "corpus.example.com/pods", func(p *Part) bool { return p.GenerateName == "" })
}

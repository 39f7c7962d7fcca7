package corpus

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Sender.
const (
	NoKey  Bug = "looks for a machine and creates one without a key" // I3
	NoLock Bug = "patches without the version that it has read"      // I1
)

// Sender creates one machine per Item, and looks before it does. It notes that it is about to, and then what it has
// created. A write that arrives when the next process has done all that must have no effect any more: each create has
// the owner's UID as its key, and each note has the version of the object that it is based on.
type Sender struct {
	renting

	Bug Bug
}

// SetupSender sets up a Sender with a bug.
func SetupSender(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return ofMachines(func(r renting) reconcile.Reconciler { return &Sender{r, bug} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Sender) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case !item.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.release(ctx, item)
	case item.Annotations[recorded] != "":
		return ctrl.Result{}, nil
	case item.Annotations[journal] == "":
		if err := r.note(ctx, item, map[string]any{journal: "yes"}); err != nil {
			return ctrl.Result{}, err
		}
	}
	id, err := r.machine(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.note(ctx, item, map[string]any{journal: nil, recorded: id})
}

// machine returns the ID of the machine of an item, which it creates unless there is one.
func (r *Sender) machine(ctx context.Context, item *Item) (string, error) {
	owner := string(item.UID)
	all, err := r.Cloud.List(ctx, owner)
	if err != nil {
		return "", err
	}
	if len(all) > 0 {
		return all[0].ID, nil
	}
	create := r.Cloud.CreateOnce
	if r.Bug == NoKey {
		create = r.Cloud.Create
	}
	m, err := create(ctx, owner, item.Spec.Size)
	return m.ID, err
}

// note sets annotations, and the finalizer with them. A nil removes one.
func (r *Sender) note(ctx context.Context, item *Item, annotations map[string]any) error {
	metadata := map[string]any{"annotations": annotations, "finalizers": []string{finalizer}}
	if r.Bug != NoLock {
		metadata["resourceVersion"] = item.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return r.Patch(ctx, item, client.RawPatch(types.MergePatchType, patch))
}

package corpus

import (
	"context"
	"maps"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// ClearsJournal is the bug of a Journal.
const ClearsJournal Bug = "clears its journal before it has recovered" // I3

// Journal notes in an annotation that it is about to create a machine, so that after a crash it looks for one
// before it creates another. With the bug it takes the note away as it begins to look: killed before it has
// recorded what it found, it creates a second machine.
type Journal struct {
	client.Client

	Cloud API
	Bug   Bug
}

// SetupJournal sets up a Journal with a bug.
func SetupJournal(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(&Journal{Client: mgr.GetClient(), Cloud: API{env}, Bug: bug})
	}
}

const (
	journal  = "corpus.example.com/creating"
	recorded = "corpus.example.com/machine"
)

// Reconcile implements reconcile.Reconciler.
func (r *Journal) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case !item.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.remove(ctx, item)
	case item.Annotations[recorded] != "":
		return ctrl.Result{}, nil
	case item.Annotations[journal] != "":
		return ctrl.Result{}, r.recover(ctx, item)
	}
	controllerutil.AddFinalizer(item, finalizer)
	if err := r.annotate(ctx, item, journal, "yes"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.create(ctx, item)
}

// recover finds out whether a machine was made, and goes on.
func (r *Journal) recover(ctx context.Context, item *Item) error {
	if r.Bug == ClearsJournal {
		if err := r.annotate(ctx, item, journal, ""); err != nil {
			return err
		}
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return r.create(ctx, item)
	}
	return r.annotate(ctx, item, recorded, all[0].ID)
}

func (r *Journal) create(ctx context.Context, item *Item) error {
	m, err := r.Cloud.Create(ctx, string(item.UID), item.Spec.Size)
	if err != nil {
		return err
	}
	return r.annotate(ctx, item, recorded, m.ID)
}

func (r *Journal) annotate(ctx context.Context, item *Item, key, value string) error {
	annotations := map[string]string{}
	maps.Copy(annotations, item.Annotations)
	annotations[key] = value
	if value == "" || key == recorded {
		delete(annotations, journal)
	}
	item.Annotations = annotations
	return r.Update(ctx, item)
}

func (r *Journal) remove(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := r.Cloud.Delete(ctx, m.ID); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(item, finalizer)
	return r.Update(ctx, item)
}

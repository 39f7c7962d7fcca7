package corpus

import (
	"context"
	"errors"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Journal: what it does when it looks for a machine after a crash.
const (
	ClearsJournal   Bug = "clears its journal before it has recovered"                 // I3: killed again, it creates a second machine
	WritesSpec      Bug = "writes the spec that it read when it records what it found" // I1: a user may have changed it
	StopsTrying     Bug = "gives up for good after three conflicts"                    // I1
	StaysRecovering Bug = "does not end, after a panic, what it does one at a time"    // I1
)

// Journal notes in an annotation that it is about to create a machine, so that after a crash it looks for one
// before it creates another.
type Journal struct {
	renting

	Bug Bug

	live       client.Reader
	recovering map[types.UID]bool
	made       map[types.UID]string // if StopsTrying: it need not look for what it made itself
}

// SetupJournal sets up a Journal with a bug.
func SetupJournal(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(&Journal{
			renting: newRenting(mgr, env), Bug: bug, live: mgr.GetAPIReader(), recovering: map[types.UID]bool{}, made: map[types.UID]string{},
		})
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
		return ctrl.Result{}, r.release(ctx, item)
	case item.Annotations[recorded] != "":
		return ctrl.Result{}, r.report(ctx, item)
	case r.made[item.UID] != "":
		return ctrl.Result{}, r.annotate(ctx, item, recorded, r.made[item.UID])
	case item.Annotations[journal] != "":
		return ctrl.Result{}, r.recover(ctx, item)
	}
	if err := r.annotate(ctx, item, journal, "yes"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.create(ctx, item)
}

// recover finds out whether a machine was made, and goes on.
func (r *Journal) recover(ctx context.Context, item *Item) error {
	if r.recovering[item.UID] {
		return nil
	}
	r.recovering[item.UID] = true
	ended := r.Bug != StaysRecovering // if it panics
	defer func() {
		if ended {
			delete(r.recovering, item.UID)
		}
	}()
	err := r.look(ctx, item)
	if ended = !errors.Is(err, errContended); !ended {
		return nil
	}
	return err
}

func (r *Journal) look(ctx context.Context, item *Item) error {
	r.Cloud.Env.Author("look")
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
	if r.Bug == WritesSpec {
		before := item.DeepCopy()
		before.Spec = Spec{}
		if err := r.Patch(ctx, item, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	if r.Bug == StopsTrying {
		return r.insist(ctx, item, all[0].ID)
	}
	return r.annotate(ctx, item, recorded, all[0].ID)
}

var errContended = errors.New("somebody else writes the object")

// insist tries three times to record a machine in an object that others write.
func (r *Journal) insist(ctx context.Context, item *Item, id string) error {
	for range 3 {
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(item), item); err != nil {
			return err
		}
		annotations := maps.Clone(item.Annotations)
		delete(annotations, journal)
		annotations[recorded] = id
		item.Annotations = annotations
		if err := r.Update(ctx, item); !apierrors.IsConflict(err) {
			return err
		}
	}
	return errContended
}

func (r *Journal) create(ctx context.Context, item *Item) error {
	m, err := r.Cloud.Create(ctx, string(item.UID), item.Spec.Size)
	if err != nil {
		return err
	}
	if r.Bug == StopsTrying {
		r.made[item.UID] = m.ID
	}
	return r.annotate(ctx, item, recorded, m.ID)
}

func (r *Journal) annotate(ctx context.Context, item *Item, key, value string) error {
	before := item.DeepCopy()
	controllerutil.AddFinalizer(item, finalizer)
	annotations := map[string]string{}
	maps.Copy(annotations, item.Annotations)
	annotations[key] = value
	if value == "" || key == recorded {
		delete(annotations, journal)
	}
	item.Annotations = annotations
	return r.Patch(ctx, item, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

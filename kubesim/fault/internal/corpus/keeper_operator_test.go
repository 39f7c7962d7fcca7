package corpus

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Keeper: what it takes watches for.
const (
	WaitsOnce     Bug = "a part that the cache does not show at the second look is made again" // I1
	WaitsForBoot  Bug = "acts only in a pass that sees a part booting"                         // I1
	SkipsUnknowns Bug = "ignores a deletion of which it does not get the last state"           // I1
)

// Keeper makes one Part for each Item, and labels the Item when the Part boots, which others do.
type Keeper struct {
	kit

	// Live reads without a cache.
	Live client.Reader
	Bug  Bug

	looks map[types.UID]int // at a part that was made and not seen yet
}

// SetupKeeper sets up a Keeper with a bug.
func SetupKeeper(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, _ *fault.Env) error {
		r := &Keeper{kit: kit{mgr.GetClient()}, Live: mgr.GetAPIReader(), Bug: bug, looks: map[types.UID]int{}}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Watches(&Part{}, r.handler()).Complete(r)
	}
}

const booted = "corpus.example.com/booted"

// Reconcile implements reconcile.Reconciler.
func (r *Keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	part, err := r.find(ctx, r.Client, item)
	if err == nil && part == nil && !r.believes(item) {
		part, err = r.find(ctx, r.Live, item)
		if part != nil {
			return ctrl.Result{RequeueAfter: time.Second}, nil // the cache follows
		}
	}
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case part == nil && r.waits(item):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case part == nil:
		r.looks[item.UID] = 1
		return ctrl.Result{RequeueAfter: time.Second}, r.make(ctx, item, &Part{Spec: Spec{Size: 1}})
	}
	delete(r.looks, item.UID)
	if state := part.Status.ExternalID; item.Labels[booted] != "" || state == "" || state != booting && r.Bug == WaitsForBoot {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Patch(ctx, item, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+booted+`":"yes"}}}`)))
}

// believes reports whether the cache is all that a Keeper reads.
func (r *Keeper) believes(item *Item) bool { return r.Bug == WaitsOnce && r.looks[item.UID] > 0 }

// waits reports whether the cache gets another chance to show the part.
func (r *Keeper) waits(item *Item) bool {
	if !r.believes(item) || r.looks[item.UID] > 1 {
		return false
	}
	r.looks[item.UID]++
	return true
}

// find returns the item's part, as a reader sees it; nil if there is none.
func (r *Keeper) find(ctx context.Context, reader client.Reader, item *Item) (*Part, error) {
	parts, err := partsOf(ctx, reader, item)
	if len(parts) == 0 {
		return nil, err
	}
	return &parts[0], nil
}

// handler wakes the item of a part.
func (r *Keeper) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(part client.Object, q queue) {
		for _, o := range part.GetOwnerReferences() {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: part.GetNamespace(), Name: o.Name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if !e.DeleteStateUnknown || r.Bug != SkipsUnknowns {
				wake(e.Object, q)
			}
		},
	}
}

const booting = "booting"

// Boot is the actor that starts Parts: each boots, and then is up.
func Boot(ctx context.Context, w *fault.World) error {
	parts := &PartList{}
	if err := w.Client.List(ctx, parts); err != nil {
		return err
	}
	for i := range parts.Items {
		p := &parts.Items[i]
		switch {
		case !p.DeletionTimestamp.IsZero():
		case p.Status.ExternalID == "":
			p.Status.ExternalID = booting
			return w.Client.Status().Update(ctx, p)
		case p.Status.ExternalID == booting:
			p.Status.ExternalID = "up"
			return w.Client.Status().Update(ctx, p)
		}
	}
	return nil
}

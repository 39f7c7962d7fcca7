package corpus

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Async re-creates crossplane/upjet#561 and #632. Long creates run in a goroutine; what they
// made is kept in the memory of the process, where later reconciles look for it. The
// identity goes to the object only later. After a restart the memory is empty, so there
// seems to be no external resource, and a second machine is made.
//
// Fixed, a process that knows nothing asks the external API for machines with its tag first.
type Async struct {
	renting

	Fixed bool

	mu      sync.Mutex
	running map[types.UID]bool
	made    map[types.UID]string
}

// SetupAsync sets up an Async.
func SetupAsync(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofMachines(func(r renting) reconcile.Reconciler {
		return &Async{renting: r, Fixed: fixed, running: map[types.UID]bool{}, made: map[types.UID]string{}}
	})
}

// Reconcile implements reconcile.Reconciler.
func (r *Async) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.busy(r.held[req.NamespacedName]) {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if item.DeletionTimestamp.IsZero() {
		if err := r.hold(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	id, err := r.identity(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case !item.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.remove(ctx, item, id)
	case id == "":
		r.create(ctx, item)
		return ctrl.Result{RequeueAfter: soon}, nil
	case item.Status.ExternalID == id:
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.reportAs(ctx, item, id, metav1.ConditionTrue, "Available")
}

func (r *Async) busy(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[uid]
}

// identity is the name of the item's machine, as far as this process knows.
func (r *Async) identity(ctx context.Context, item *Item) (string, error) {
	r.mu.Lock()
	id := r.made[item.UID]
	r.mu.Unlock()
	if id == "" {
		id = item.Status.ExternalID
	}
	if id != "" || !r.Fixed {
		return id, nil
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	if len(all) > 0 {
		id = all[0].ID
	}
	return id, err
}

// create makes a machine in a goroutine of its own, which may outlive the reconcile.
func (r *Async) create(ctx context.Context, item *Item) {
	uid, size := item.UID, item.Spec.Size
	r.mu.Lock()
	r.running[uid] = true
	r.mu.Unlock()
	go func() {
		m, err := r.Cloud.Create(context.WithoutCancel(ctx), string(uid), size)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running[uid] = false
		if err == nil {
			r.made[uid] = m.ID
		}
	}()
}

func (r *Async) remove(ctx context.Context, item *Item, id string) error {
	if id != "" {
		if err := r.Cloud.Delete(ctx, id); err != nil {
			return err
		}
	}
	return r.letGo(ctx, item)
}

package corpus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Requests re-creates issue 4956 of cert-manager/cert-manager: for each revision it makes a request under a generated
// name, and waits until its cache shows it. If the API server is slow, the create or that wait ends with an error, and
// the next reconcile makes another one, because its cache shows none. Of two it takes neither, until somebody deletes one.
//
// Fixed, the name follows from the object and its revision, so that there is one at most.
type Requests struct {
	kit

	Fixed bool
}

// SetupRequests sets up a Requests, which makes Parts of each Item.
func SetupRequests(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Requests{k, fixed} })
}

// shows is how long a cache may take to show what was created.
const shows = 5 * time.Second

// Reconcile implements reconcile.Reconciler.
func (r *Requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	found, err := r.requests(ctx, item)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case found > 1:
		return ctrl.Result{}, nil // an error in the log
	case found == 1:
		return ctrl.Result{}, r.report(ctx, item)
	}
	if err := r.request(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, shows, true, func(ctx context.Context) (bool, error) {
		found, err := r.requests(ctx, item)
		return found > 0, err
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("wait for the request to exist: %w", err)
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// requests is how many requests there are for an item as it is.
func (r *Requests) requests(ctx context.Context, item *Item) (int, error) {
	all, err := partsOf(ctx, r, item)
	return len(slices.DeleteFunc(all, func(p Part) bool { return p.Spec != item.Spec })), err
}

// request makes a request.
func (r *Requests) request(ctx context.Context, item *Item) error {
	p := &Part{Spec: item.Spec}
	if r.Fixed {
		p.Name = fmt.Sprintf("%s-%d", item.Name, item.Generation)
	}
	return client.IgnoreAlreadyExists(r.make(ctx, item, p))
}

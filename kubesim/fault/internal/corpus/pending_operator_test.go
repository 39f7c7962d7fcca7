package corpus

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The annotations by which Pending remembers what it was about to do.
const (
	createPending   = "corpus.example.com/create-pending"
	createSucceeded = "corpus.example.com/create-succeeded"
	externalName    = "corpus.example.com/external-name"
)

// Pending re-creates crossplane/crossplane#3037 and crossplane/crossplane-runtime#340. Before
// it creates something outside, whose name the vendor chooses, it writes an annotation that a
// create is pending, and after it another that the create succeeded. Killed in between, it
// finds the first without the second, cannot tell whether there is something outside, and
// refuses to go on until a person removes the annotation.
//
// Fixed, it looks for its tag at the external API and goes on with what it finds, or with nothing.
type Pending struct {
	renting

	Fixed bool
}

// SetupPending sets up a Pending.
func SetupPending(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofMachines(func(r renting) reconcile.Reconciler { return &Pending{r, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Pending) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if incomplete(item) && !r.Fixed {
		return ctrl.Result{}, r.reportAs(ctx, item, "", metav1.ConditionFalse, "CreateIncomplete")
	}
	all, err := r.observe(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, item, all)
	}
	if len(all) == 0 {
		if all, err = r.create(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.annotate(ctx, item, createSucceeded, all[0].ID); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: poll}, r.report(ctx, item)
}

func incomplete(item *Item) bool {
	return item.Annotations[createPending] != "" && item.Annotations[createSucceeded] == ""
}

// observe finds what there is by the recorded name, or, if that is what was fixed, by tag.
func (r *Pending) observe(ctx context.Context, item *Item) ([]Machine, error) {
	if r.Fixed {
		return r.Cloud.List(ctx, string(item.UID))
	}
	name := item.Annotations[externalName]
	if name == "" {
		return nil, nil
	}
	m, err := r.Cloud.Get(ctx, name)
	if m == nil {
		return nil, err
	}
	return []Machine{*m}, err
}

func (r *Pending) create(ctx context.Context, item *Item) ([]Machine, error) {
	controllerutil.AddFinalizer(item, finalizer)
	if err := r.annotate(ctx, item, createPending, ""); err != nil {
		return nil, err
	}
	r.held[client.ObjectKeyFromObject(item)] = item.UID
	m, err := r.Cloud.Create(ctx, string(item.UID), item.Spec.Size)
	if err != nil { // it failed, so it is not pending any more
		delete(item.Annotations, createPending)
		return nil, errors.Join(err, r.Update(ctx, item))
	}
	return []Machine{m}, nil
}

// annotate writes one of the two annotations, and the name if it is known, unless they are
// there.
func (r *Pending) annotate(ctx context.Context, item *Item, key, name string) error {
	if item.Annotations[key] != "" && controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	if item.Annotations == nil {
		item.Annotations = map[string]string{}
	}
	item.Annotations[key] = time.Now().UTC().Format(time.RFC3339)
	if name != "" {
		item.Annotations[externalName] = name
		delete(item.Annotations, createPending)
	}
	return r.Update(ctx, item)
}

func (r *Pending) remove(ctx context.Context, item *Item, all []Machine) error {
	for _, m := range all {
		if err := r.Cloud.Delete(ctx, m.ID); err != nil {
			return err
		}
	}
	return r.letGo(ctx, item)
}

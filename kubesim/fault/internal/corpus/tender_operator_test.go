package corpus

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// The bugs of a Tender: what it believes of the Part that it made.
const (
	LooksOnce   Bug = "does not watch its part"                             // I1
	TrustsMarks Bug = "takes its part for right by a mark of what it wrote" // I1
)

// Tender keeps one Part for each Item, of the same size.
type Tender struct {
	kit

	Bug Bug
}

// SetupTender sets up a Tender with a bug.
func SetupTender(bug Bug) func(ctrl.Manager, *fault.Env) error {
	if bug == LooksOnce {
		return ofMachines(func(r renting) reconcile.Reconciler { return &Tender{r.kit, bug} })
	}
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Tender{k, bug} })
}

// written says which size a Tender has written.
const written = "corpus.example.com/written"

// Reconcile implements reconcile.Reconciler.
func (r *Tender) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	part, err := r.part(ctx, item, "-part")
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.tend(ctx, item, part); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// tend makes the part, or makes it as it should be.
func (r *Tender) tend(ctx context.Context, item *Item, part *Part) error {
	mark := fmt.Sprint(item.Spec.Size)
	if part == nil {
		part = &Part{ObjectMeta: metav1.ObjectMeta{Name: item.Name + "-part"}, Spec: Spec{Size: item.Spec.Size}}
		annotate(part, written, mark)
		return client.IgnoreAlreadyExists(r.make(ctx, item, part))
	}
	if part.Annotations[written] == mark && (r.Bug == TrustsMarks || part.Spec.Size == item.Spec.Size) {
		return nil
	}
	part.Spec.Size = item.Spec.Size
	annotate(part, written, mark)
	return r.Update(ctx, part)
}

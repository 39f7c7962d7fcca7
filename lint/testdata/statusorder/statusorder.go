package statusorder

import (
	"context"
	"maps"
	"slices"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	r.Obj.Status.Names = nil
	for name := range r.Obj.Spec.Options {
		r.Obj.Status.Names = append(r.Obj.Status.Names, name) // want "this list of the status of Shop has another order in each reconciliation"
	}
	var names []string
	for name := range r.Obj.Spec.Options {
		names = append(names, name) // want "has another order"
	}
	r.Obj.Status.Names = names
	good(r.Obj)
	return loop.Done()
}

func good(shop *api.Shop) {
	for _, name := range slices.Sorted(maps.Keys(shop.Spec.Options)) {
		shop.Status.Names = append(shop.Status.Names, name)
	}
	for name := range shop.Spec.Options {
		shop.Status.Names = append(shop.Status.Names, name)
	}
	slices.Sort(shop.Status.Names)
}

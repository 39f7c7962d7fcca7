package staleready

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	db := &api.Database{}
	if !meta.IsStatusConditionTrue(db.Status.Conditions, "Ready") { // want "Ready of this Database may be about an earlier generation"
		return loop.Done()
	}
	if meta.IsStatusConditionTrue(r.Obj.Status.Conditions, "Ready") || meta.IsStatusConditionTrue(db.Status.Conditions, "Paused") || current(db) {
		return loop.Again()
	}
	return loop.Done()
}

func current(db *api.Database) bool {
	return db.Status.ObservedGeneration == db.Generation && meta.IsStatusConditionTrue(db.Status.Conditions, "Ready")
}

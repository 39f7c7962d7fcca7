package directwrite

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(ctx context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	if err := r.Client().Update(ctx, r.Obj); err != nil { // want "the reconciler writes its Shop itself, beside the loop's commit"
		return loop.Fail(err)
	}
	if err := r.Client().Status().Patch(ctx, r.Obj, nil); err != nil { // want "writes its Shop itself"
		return loop.Fail(err)
	}
	other := &api.Shop{}
	if err := r.Client().Create(ctx, other); err != nil {
		return loop.Fail(err)
	}
	return loop.FromError(r.Client().Update(ctx, &corev1.Pod{}))
}

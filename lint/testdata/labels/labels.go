// Package labels finds objects by labels inside of a reconciliation, as it may.
package labels

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(ctx context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	return loop.FromError(r.Client().List(ctx, &corev1.ConfigMapList{}, client.InNamespace(r.Obj.Namespace), client.MatchingLabels{"of": r.Obj.Name}))
}

package statusclock

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/loop"
)

type reconciler struct{}

func (reconciler) Reconcile(_ context.Context, r *loop.Run[*api.Shop]) loop.Outcome {
	now := metav1.Now()
	r.Obj.Status.LastRun = &now                    // want "each reconciliation writes another time to the status of Shop"
	r.Obj.Status.Seen = metav1.NewTime(time.Now()) // want "writes another time"
	if r.Obj.Status.Phase != "ready" {
		r.Obj.Status.Phase, r.Obj.Status.LastRun = "ready", &now
	}
	then := metav1.NewTime(r.Obj.CreationTimestamp.Time)
	r.Obj.Status.Seen = then
	changes(r.Obj)
	return loop.Done()
}

func changes(shop *api.Shop) {
	if shop.Status.Phase == "ready" {
		return
	}
	shop.Status.Seen = metav1.Now()
}

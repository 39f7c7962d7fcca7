// Package helper has functions that reconcilers call.
package helper

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
)

// Ready changes the status of its parameter: whoever calls it does.
func Ready(shop *api.Shop) {
	meta.SetStatusCondition(&shop.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue})
}

// Indirectly does so, too.
func Indirectly(shop *api.Shop) { Ready(shop) }

// Save writes the status of any object.
func Save(ctx context.Context, c client.Client, obj client.Object) error {
	return c.Status().Update(ctx, obj)
}

// Phase only reads it.
func Phase(shop *api.Shop) string { return shop.Status.Phase }

// Apply writes the status of its parameter by an object that is made from it.
func Apply(ctx context.Context, c client.Client, shop *api.Shop) error {
	return c.Status().Update(ctx, base(shop))
}

// Applied does so by a variable.
func Applied(ctx context.Context, c client.Client, shop *api.Shop) error {
	made := base(shop)
	return c.Status().Update(ctx, made)
}

func base(shop *api.Shop) *api.Shop { return &api.Shop{ObjectMeta: shop.ObjectMeta} }

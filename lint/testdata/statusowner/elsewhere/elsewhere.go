// Package elsewhere has no reconciler.
package elsewhere

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/lint/testdata/api"
	"github.com/trimtab-dev/trimtab/lint/testdata/statusowner/helper"
)

func stores(ctx context.Context, c client.Client, key client.ObjectKey) error {
	shop := &api.Shop{}
	if err := c.Get(ctx, key, shop); err != nil {
		return err
	}
	shop.Status.Phase = "closed"                             // want "this changes the status of Shop in a package that has no reconciler for it; have the reconciler of Shop report it"
	shop.Status.Names[0] = "a"                               // want "this changes the status of Shop"
	shop.SetPhase("closed")                                  // want "this calls SetPhase, which changes the status of Shop"
	helper.Ready(shop)                                       // want "this calls Ready, which changes the status of Shop"
	helper.Indirectly(shop)                                  // want "this calls Indirectly, which changes the status of Shop"
	_ = helper.Save(ctx, c, shop)                            // want "this calls Save, which changes the status of Shop"
	_ = c.Status().Patch(ctx, shop, nil)                     // want "this writes the status of Shop"
	_ = c.Status().Update(ctx, &api.Shop{})                  // want "this writes the status of Shop"
	_ = helper.Applied(ctx, c, shop)                         // want "this calls Applied, which changes the status of Shop"
	_ = c.Status().Apply(ctx, &api.ShopApplyConfiguration{}) // want "this writes the status of Shop"
	shop.Spec.Size = 3
	shop.Status = api.Status{} // as before it is created again
	return c.Update(ctx, shop)
}

func lists(ctx context.Context, c client.Client) error {
	shops := &api.ShopList{}
	if err := c.List(ctx, shops); err != nil {
		return err
	}
	for i := range shops.Items {
		shops.Items[i].Status.Phase = "" // want "this changes the status of Shop"
	}
	return nil
}

type webhook struct{}

// Default must not write a status: it is no reconciler.
func (webhook) Default(_ context.Context, shop *api.Shop) error {
	shop.Status.Phase = "new" // want "this changes the status of Shop"
	return nil
}

// helpers and copies are the business of whoever calls them.
func helps(shop *api.Shop) { shop.Status.Phase = "helped" }

func example() *api.Shop {
	shop := &api.Shop{}
	shop.Status.Phase = "as in a manifest"
	helps(shop)
	before := shop.DeepCopy()
	before.Status.Phase = ""
	return shop
}

// ConvertTo is between versions of a kind.
func ConvertTo(from any) {
	shop := from.(*api.Shop)
	shop.Status.Phase = "converted"
}

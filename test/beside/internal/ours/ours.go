// Package ours is the operator of Things that is written with trimtab.
package ours

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/beside/internal/cloud"
)

type (
	thingT      = *thing.Thing
	observation = external.Observation[cloud.Item]
)

// driver manages Things as items of the cloud.
type driver struct{}

// Observe implements external.Driver.
func (driver) Observe(ctx context.Context, r external.ObserveRequest[thingT, cloud.API]) (observation, error) {
	item, err := r.Client.Get(ctx, r.ID)
	if errors.Is(err, cloud.ErrNotFound) {
		return external.Missing[cloud.Item](), nil
	}
	if err != nil {
		return observation{}, err
	}
	return *observed(item), nil
}

func observed(item cloud.Item) *observation {
	return new(external.Available(item, external.MarkOf(item.Labels)))
}

// Compare implements external.Driver.
func (driver) Compare(r external.CompareRequest[thingT, cloud.Item]) external.Changes {
	return external.Field("spec.size", r.Object.Spec.Size, r.Have.Size)
}

// Create implements external.Driver.
func (driver) Create(ctx context.Context, r external.CreateRequest[thingT, cloud.API]) (external.CreateResponse[cloud.Item], error) {
	item, err := r.Client.Create(ctx, cloud.Item{Name: r.ID, Size: r.Object.Spec.Size, Labels: r.Mark.On(nil)})
	if errors.Is(err, cloud.ErrExists) {
		return external.CreateResponse[cloud.Item]{}, external.Conflict(err)
	}
	if err != nil {
		return external.CreateResponse[cloud.Item]{}, err
	}
	return external.CreateResponse[cloud.Item]{Observed: observed(item)}, nil
}

// Update implements external.Updater.
func (driver) Update(ctx context.Context, r external.UpdateRequest[thingT, cloud.API, cloud.Item]) (external.UpdateResponse[cloud.Item], error) {
	item, err := r.Client.Resize(ctx, r.ID, r.Object.Spec.Size)
	if err != nil {
		return external.UpdateResponse[cloud.Item]{}, err
	}
	return external.UpdateResponse[cloud.Item]{Observed: observed(item)}, nil
}

// Delete implements external.Driver.
func (driver) Delete(ctx context.Context, r external.DeleteRequest[thingT, cloud.API]) (external.DeleteResponse, error) {
	return external.DeleteResponse{Gone: true}, r.Client.Delete(ctx, r.ID)
}

// Reflect implements external.Reflector.
func (driver) Reflect(r external.ReflectRequest[thingT, cloud.Item]) {
	r.Object.Status.Host = r.Have.Name + ".example.org"
}

// Controller returns the controller of Things in the cloud that connect returns.
func Controller(connect func() cloud.API, drift time.Duration, workers int) *loop.Controller[thingT] {
	return external.New(driver{}, external.Options[thingT, cloud.API]{
		Connect:     func(context.Context) (cloud.API, error) { return connect(), nil },
		CreateGrace: -1, DriftInterval: drift, Loop: loop.Options[thingT]{Workers: workers},
	})
}

// Options describe the operator.
func Options() operator.Options {
	url, drift, workers := "", time.Duration(0), 0
	return operator.Options{
		Name: "ours", AddToScheme: thing.AddToScheme, CRDs: thing.CRDs,
		Flags: func(f *pflag.FlagSet) {
			f.StringVar(&url, "cloud", "", "URL of the external API")
			f.DurationVar(&drift, "drift-interval", 0, "time between two observations")
			f.IntVar(&workers, "workers", 0, "number of workers")
		},
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{Controller(func() cloud.API { return cloud.NewClient(url) }, drift, workers)}, nil
		},
	}
}

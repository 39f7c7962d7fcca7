package scenarios

import (
	"context"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// natsOperator is the sample's operator on the server of the sandbox. Its drivers come to the points at
// which an author's code can panic, or never return.
func natsOperator(env *fault.Env) operator.Options {
	o := nats.Operator()
	o.Controllers = func() ([]operator.Controller, error) {
		c := nats.NewClient("nats://memory", carrier(env))
		return []operator.Controller{
			external.New(streams(env), natsOptions[*v1alpha1.Stream](env, c)),
			external.New(consumers(env), natsOptions[*v1alpha1.Consumer](env, c)),
			external.New(buckets(env), natsOptions[*v1alpha1.KeyValue](env, c)),
		}, nil
	}
	return o
}

// natsOptions are those of the sample.
func natsOptions[T external.Object](env *fault.Env, c *nats.Client) external.Options[T, *nats.Client] {
	return external.Options[T, *nats.Client]{
		Connect: func(context.Context) (*nats.Client, error) { env.Author("Connect"); return c, nil },
		Endpoint: func(context.Context, *nats.Client) (string, error) {
			env.Author("Endpoint")
			return "nats://memory", nil
		},
		CreateGrace: time.Second, UniqueNames: true,
	}
}

func streams(env *fault.Env) authored[*v1alpha1.Stream, *nats.LiveStream] {
	return authored[*v1alpha1.Stream, *nats.LiveStream]{nats.Streams{}, env}
}

func consumers(env *fault.Env) dependent[*v1alpha1.Consumer, *nats.LiveConsumer] {
	return dependent[*v1alpha1.Consumer, *nats.LiveConsumer]{authored[*v1alpha1.Consumer, *nats.LiveConsumer]{nats.Consumers{}, env}, nats.Consumers{}}
}

func buckets(env *fault.Env) authored[*v1alpha1.KeyValue, *nats.LiveStream] {
	return authored[*v1alpha1.KeyValue, *nats.LiveStream]{nats.KeyValues{}, env}
}

// able is what each driver of the sample can do.
type able[T external.Object, O any] interface { //nolint:interfacebloat // each part is an interface of its own
	external.Driver[T, *nats.Client, O]
	external.Namer[T]
	external.Updater[T, *nats.Client, O]
	external.Marker[T, *nats.Client]
	external.Unmarker[T, *nats.Client]
	external.Classifier
	external.Reflector[T, O]
}

// authored is a driver each of whose methods is a point at which a schedule can let it panic or hang,
// and so is what comes after an effect.
type authored[T external.Object, O any] struct {
	driver able[T, O]
	env    *fault.Env
}

// ExternalName names the thing.
func (a authored[T, O]) ExternalName(obj T) (string, error) {
	a.env.Author("ExternalName")
	return a.driver.ExternalName(obj)
}

// Observe looks at the thing.
func (a authored[T, O]) Observe(ctx context.Context, r external.ObserveRequest[T, *nats.Client]) (external.Observation[O], error) {
	a.env.Author("Observe")
	return a.driver.Observe(ctx, r)
}

// Compare compares the thing.
func (a authored[T, O]) Compare(r external.CompareRequest[T, O]) external.Changes {
	a.env.Author("Compare")
	return a.driver.Compare(r)
}

// Create makes the thing.
func (a authored[T, O]) Create(ctx context.Context, r external.CreateRequest[T, *nats.Client]) (external.CreateResponse[O], error) {
	a.env.Author("Create")
	response, err := a.driver.Create(ctx, r)
	a.env.Author("after Create")
	return response, err
}

// Update changes the thing.
func (a authored[T, O]) Update(ctx context.Context, r external.UpdateRequest[T, *nats.Client, O]) (external.UpdateResponse[O], error) {
	a.env.Author("Update")
	response, err := a.driver.Update(ctx, r)
	a.env.Author("after Update")
	return response, err
}

// Delete removes the thing.
func (a authored[T, O]) Delete(ctx context.Context, r external.DeleteRequest[T, *nats.Client]) (external.DeleteResponse, error) {
	a.env.Author("Delete")
	response, err := a.driver.Delete(ctx, r)
	a.env.Author("after Delete")
	return response, err
}

// Mark marks the thing.
func (a authored[T, O]) Mark(ctx context.Context, r external.MarkRequest[T, *nats.Client]) (external.MarkResponse, error) {
	a.env.Author("Mark")
	response, err := a.driver.Mark(ctx, r)
	a.env.Author("after Mark")
	return response, err
}

// Unmark takes the mark off.
func (a authored[T, O]) Unmark(ctx context.Context, r external.UnmarkRequest[T, *nats.Client]) (external.UnmarkResponse, error) {
	a.env.Author("Unmark")
	response, err := a.driver.Unmark(ctx, r)
	a.env.Author("after Unmark")
	return response, err
}

// Classify tells what an error means.
func (a authored[T, O]) Classify(err error) external.Class {
	a.env.Author("Classify")
	return a.driver.Classify(err)
}

// Reflect shows the thing.
func (a authored[T, O]) Reflect(r external.ReflectRequest[T, O]) {
	a.env.Author("Reflect")
	a.driver.Reflect(r)
}

// dependent is such a driver of things that need others.
type dependent[T external.Object, O any] struct {
	authored[T, O]
	on external.Dependent[T]
}

// DependsOn names what an object needs.
func (d dependent[T, O]) DependsOn(obj T) []external.Dependency {
	d.env.Author("DependsOn")
	return d.on.DependsOn(obj)
}

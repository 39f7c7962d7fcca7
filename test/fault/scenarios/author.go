package scenarios

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// panicking lets the driver of buckets come to the points at which an author's code can panic.
func panicking(s fault.Scenario) fault.Scenario {
	s.Operator = func(mgr ctrl.Manager, env *fault.Env) error {
		c := nats.NewClient("nats://memory", carrier(env))
		all := nats.Controllers(func(context.Context) (*nats.Client, error) { return c, nil }, 0, nil)
		return setUp(mgr, append(all[:len(all)-1], bucketController(env, c)))
	}
	return s
}

// bucketController is the sample's controller of buckets, with its options.
func bucketController(env *fault.Env, c *nats.Client) operator.Controller {
	return external.New(buckets{env: env}, external.Options[*v1alpha1.KeyValue, *nats.Client]{
		Connect: func(context.Context) (*nats.Client, error) { env.Author("Connect"); return c, nil },
		Endpoint: func(context.Context, *nats.Client) (string, error) {
			env.Author("Endpoint")
			return "nats://memory", nil
		},
		CreateGrace: time.Second, UniqueNames: true,
	})
}

// buckets is the sample's driver of buckets. Each of its methods is a point at which a schedule can
// let it panic, and so is what comes after an effect.
type buckets struct {
	nats.KeyValues
	env *fault.Env
}

// ExternalName names the bucket's stream.
func (b buckets) ExternalName(k *v1alpha1.KeyValue) (string, error) {
	b.env.Author("ExternalName")
	return b.KeyValues.ExternalName(k)
}

// Observe looks at the bucket.
func (b buckets) Observe(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, ref external.Ref) (external.Observation[*nats.LiveStream], error) {
	b.env.Author("Observe")
	return b.KeyValues.Observe(ctx, c, k, ref)
}

// Compare compares the bucket.
func (b buckets) Compare(k *v1alpha1.KeyValue, have *nats.LiveStream) external.Changes {
	b.env.Author("Compare")
	return b.KeyValues.Compare(k, have)
}

// Create makes the bucket.
func (b buckets) Create(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, in external.CreateInput) (external.Result, error) {
	b.env.Author("Create")
	result, err := b.KeyValues.Create(ctx, c, k, in)
	b.env.Author("after Create")
	return result, err
}

// Update changes the bucket.
func (b buckets) Update(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, ref external.Ref, have *nats.LiveStream, changes external.Changes) (external.Result, error) {
	b.env.Author("Update")
	result, err := b.KeyValues.Update(ctx, c, k, ref, have, changes)
	b.env.Author("after Update")
	return result, err
}

// Delete removes the bucket.
func (b buckets) Delete(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, ref external.Ref) (external.Result, error) {
	b.env.Author("Delete")
	result, err := b.KeyValues.Delete(ctx, c, k, ref)
	b.env.Author("after Delete")
	return result, err
}

// Mark marks the bucket.
func (b buckets) Mark(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, ref external.Ref, mark external.Mark) error {
	b.env.Author("Mark")
	err := b.KeyValues.Mark(ctx, c, k, ref, mark)
	b.env.Author("after Mark")
	return err
}

// Unmark takes the mark off.
func (b buckets) Unmark(ctx context.Context, c *nats.Client, k *v1alpha1.KeyValue, ref external.Ref) error {
	b.env.Author("Unmark")
	err := b.KeyValues.Unmark(ctx, c, k, ref)
	b.env.Author("after Unmark")
	return err
}

// Classify tells what an error means.
func (b buckets) Classify(err error) external.Class {
	b.env.Author("Classify")
	return b.KeyValues.Classify(err)
}

// Reflect shows the bucket.
func (b buckets) Reflect(k *v1alpha1.KeyValue, have *nats.LiveStream) {
	b.env.Author("Reflect")
	b.KeyValues.Reflect(k, have)
}

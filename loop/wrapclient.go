package loop

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WrapClient returns a client for a reconciler that is passed to [Wrap]. In a pass, which it knows by the context, it is
// [Run.Client]: it never reads anything older than what was written through it for the object, and the next pass waits for
// that. Outside of passes it is c.
func WrapClient(c client.Client) client.Client { return wrappedClient{c} }

// clientKey is that of the client of a pass in its context.
type clientKey struct{}

// wrappedClient is the client of the pass in the context of a call.
type wrappedClient struct{ client.Client }

func (w wrappedClient) in(ctx context.Context) client.Client {
	if c, ok := ctx.Value(clientKey{}).(*consistent); ok {
		return c
	}
	return w.Client
}

// Get implements [client.Reader].
func (w wrappedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return w.in(ctx).Get(ctx, key, obj, opts...)
}

// List implements [client.Reader].
func (w wrappedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.in(ctx).List(ctx, list, opts...)
}

// Create implements [client.Writer].
func (w wrappedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return w.in(ctx).Create(ctx, obj, opts...)
}

// Update implements [client.Writer].
func (w wrappedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return w.in(ctx).Update(ctx, obj, opts...)
}

// Patch implements [client.Writer].
func (w wrappedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return w.in(ctx).Patch(ctx, obj, patch, opts...)
}

// Apply implements [client.Writer].
func (w wrappedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return w.in(ctx).Apply(ctx, obj, opts...)
}

// Delete implements [client.Writer].
func (w wrappedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return w.in(ctx).Delete(ctx, obj, opts...)
}

// DeleteAllOf implements [client.Writer].
func (w wrappedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return w.in(ctx).DeleteAllOf(ctx, obj, opts...)
}

// Status implements [client.StatusClient].
func (w wrappedClient) Status() client.SubResourceWriter { return w.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (w wrappedClient) SubResource(name string) client.SubResourceClient {
	return wrappedPart{w, name}
}

// wrappedPart is the client of a part of objects.
type wrappedPart struct {
	whole wrappedClient
	name  string
}

func (p wrappedPart) in(ctx context.Context) client.SubResourceClient {
	return p.whole.in(ctx).SubResource(p.name)
}

// Get implements [client.SubResourceReader].
func (p wrappedPart) Get(ctx context.Context, obj, part client.Object, opts ...client.SubResourceGetOption) error {
	return p.in(ctx).Get(ctx, obj, part, opts...)
}

// Create implements [client.SubResourceWriter].
func (p wrappedPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	return p.in(ctx).Create(ctx, obj, part, opts...)
}

// Update implements [client.SubResourceWriter].
func (p wrappedPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return p.in(ctx).Update(ctx, obj, opts...)
}

// Patch implements [client.SubResourceWriter].
func (p wrappedPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return p.in(ctx).Patch(ctx, obj, patch, opts...)
}

// Apply implements [client.SubResourceWriter].
func (p wrappedPart) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return p.in(ctx).Apply(ctx, obj, opts...)
}

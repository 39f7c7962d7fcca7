package disturb

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// cleanup is how long another controller takes to remove its finalizer from an object in deletion.
const cleanup = 30 * time.Second

// hold lets another controller put its finalizer on the object of a call. If it cannot, the run says nothing.
func (o *Others) hold(c *history.Call) {
	err := o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) (err error) {
		if o.held, err = o.read(ctx, w, c); err != nil {
			return err
		}
		return patchFinalizers(ctx, w, o.held, append(slices.Clone(o.held.GetFinalizers()), state.ForeignFinalizer))
	})
	o.Void = o.Void || err != nil
}

// patchFinalizers replaces the finalizers of an object, unless it was changed since it was read.
func patchFinalizers(ctx context.Context, w *sandbox.World, u *unstructured.Unstructured, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": u.GetResourceVersion()}})
	if err != nil {
		return err
	}
	return w.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody-else"))
}

// release lets the other controller remove its finalizer when the object has been in deletion for a while.
func (o *Others) release() error {
	if o.held == nil {
		return nil
	}
	u := o.held.DeepCopy()
	if err := o.box.World().Client.Get(context.Background(), client.ObjectKeyFromObject(u), u); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		u.SetFinalizers(nil)
	}
	at := slices.Index(u.GetFinalizers(), state.ForeignFinalizer)
	switch {
	case at < 0: // it was removed, by this controller or by the operator
		o.held, o.HeldUntil = nil, time.Time{}
		return nil
	case u.GetDeletionTimestamp() == nil:
		return nil
	}
	if o.HeldUntil.IsZero() {
		o.HeldUntil = time.Now().Add(cleanup)
	}
	if time.Now().Before(o.HeldUntil) {
		return nil
	}
	return o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) error {
		return patchFinalizers(ctx, w, u, slices.Delete(slices.Clone(u.GetFinalizers()), at, at+1))
	})
}

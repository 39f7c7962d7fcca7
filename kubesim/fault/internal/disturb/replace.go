package disturb

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// replace lets somebody else delete the object that a call is about, and create one of his own under its name.
// Where that takes longer, because others wait for the object, the run says nothing.
func (o *Others) replace(c *history.Call) {
	err := o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) error {
		u, err := o.read(ctx, w, c)
		if err != nil {
			return err
		}
		if len(u.GetFinalizers()) > 0 {
			if err := w.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				return err
			}
		}
		if err := w.Client.Delete(ctx, u, client.PropagationPolicy("Background")); err != nil {
			return err
		}
		metadata := map[string]any{"name": c.Name}
		if c.Namespace != "" {
			metadata["namespace"] = c.Namespace
		}
		u.Object["metadata"] = metadata
		delete(u.Object, "status")
		return w.Client.Create(ctx, u)
	})
	o.Void = o.Void || err != nil
}

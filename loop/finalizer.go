package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// Finalizer returns the finalizer that the controller puts on objects of kind gvk, whose resource is plural, and why
// they need it, as the end of a sentence: "because ...". Both are empty if they need none.
func (c *Controller[T]) Finalizer(gvk schema.GroupVersionKind, plural string) (name, why string) {
	name, why = plural+"."+gvk.Group+"/finalizer", "the controller cleans up before an object is deleted"
	if w, ok := c.author.(Decorator[T]); ok {
		name, why = w.Finalizer(gvk)
	}
	if _, ok := c.author.(Cleaner[T]); !ok || why == "" {
		return "", ""
	}
	return or(c.options.Finalizer, name), why
}

// why returns why objects need the finalizer.
func (c *Controller[T]) why() string {
	_, why := c.Finalizer(c.gvk, "")
	return why
}

// finalizerName returns the finalizer's name, empty if the author has nothing to clean up.
func (c *Controller[T]) finalizerName(mapper apimeta.RESTMapper) (string, error) {
	if _, ok := c.author.(Cleaner[T]); !ok {
		return "", nil
	}
	if w, ok := c.author.(Decorator[T]); ok {
		name, why := w.Finalizer(c.gvk)
		if name = or(c.options.Finalizer, name); why == "" {
			c.unneeded, name = name, ""
		}
		return name, nil
	}
	if c.options.Finalizer != "" {
		return c.options.Finalizer, nil
	}
	mapping, err := mapper.RESTMapping(c.gvk.GroupKind(), c.gvk.Version)
	if err != nil {
		return "", fmt.Errorf("the API server does not serve %s; install its CRD first: %w", c.gvk.GroupKind(), err)
	}
	name, _ := c.Finalizer(c.gvk, mapping.Resource.Resource)
	return name, nil
}

// dropUnneeded removes a finalizer that an earlier version of the operator needed, once nothing is left that it was for.
// It reports whether the pass can go on.
func (p *pass[T]) dropUnneeded(ctx context.Context) (end ending, ok bool) {
	if p.c.unneeded == "" || !controllerutil.ContainsFinalizer(p.base, p.c.unneeded) {
		return ending{}, true
	}
	released, err := p.callRelease(ctx)
	p.restore()
	switch {
	case err != nil:
		return p.unwrittenAgain(err), false
	case !released:
		return ending{}, true
	}
	want := p.copy()
	controllerutil.RemoveFinalizer(want, p.c.unneeded)
	p.budget++
	if err := p.patchMetadata(ctx, want); err != nil {
		return p.writeFailed(err), false
	}
	p.restore()
	return ending{}, true
}

// ensureFinalizer puts the finalizer on, together with what the author prepares, before
// anything else happens. The pass goes on with the server's answer.
func (p *pass[T]) ensureFinalizer(ctx context.Context) error {
	if p.c.finalizer == "" || controllerutil.ContainsFinalizer(p.base, p.c.finalizer) {
		return nil
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.addFinalizer(ctx, p.run.Obj); err != nil {
		return err
	}
	p.restore()
	return nil
}

// addFinalizer writes the metadata of want and our finalizer.
func (o *object[T]) addFinalizer(ctx context.Context, want T) error {
	controllerutil.AddFinalizer(want, o.c.finalizer)
	o.budget++
	// Noted before the write: its answer may come after the end of the object.
	o.c.memory.finalize(o.key, o.base.GetUID())
	return o.patchMetadata(ctx, want)
}

// releaseObject ends the object's life for this controller: its finalizer goes.
func (p *pass[T]) releaseObject(ctx context.Context) error {
	if p.vanished == nil {
		if err := p.removeFinalizer(ctx); err != nil {
			return err
		}
	}
	p.setState(stateGone, "", "")
	return nil
}

// stateGone ends the row of states that a trace shows; no object ever has it.
const stateGone = "(gone)"

// removeFinalizer takes our entry, and no other, off the object.
func (o *object[T]) removeFinalizer(ctx context.Context) error {
	i := slices.Index(o.base.GetFinalizers(), o.c.finalizer)
	if i < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.base.GetUID()},
		{"op": "test", "path": path, "value": o.c.finalizer},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return err
	}
	obj := o.copy()
	ctx, cancel := commitContext(ctx)
	defer cancel()
	err = o.c.client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch), o.c.fieldOwner())
	o.wrote("patch", "", []string{"metadata.finalizers"}, obj.GetResourceVersion(), err)
	switch {
	case apierrors.IsNotFound(err): // gone already
	case apierrors.IsInvalid(err) && o.finalizersChanged(ctx): // the test failed
		return apierrors.NewConflict(schema.GroupResource{Group: o.c.gvk.Group, Resource: o.c.gvk.Kind}, o.key.Name, err)
	case err != nil:
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	o.c.memory.release(o.key, o.base.GetUID())
	return nil
}

// finalizersChanged reports whether others changed the finalizers since the object was read. An
// admission policy answers with the same code as a patch whose test failed, for as long as the object
// is as it is.
func (o *object[T]) finalizersChanged(ctx context.Context) bool {
	now := cached.New[T]()
	liveReads.WithLabelValues(o.c.name, o.c.gvk.Kind).Inc()
	err := o.c.live.Get(ctx, o.key, now)
	return err != nil || now.GetUID() != o.base.GetUID() || !slices.Equal(now.GetFinalizers(), o.base.GetFinalizers())
}

// finalizersOfOthers returns the finalizers on obj that are not ours.
func finalizersOfOthers(obj client.Object, own string) []string {
	var others []string
	for _, f := range obj.GetFinalizers() {
		if f != own {
			others = append(others, f)
		}
	}
	return others
}

package loop

import (
	"context"
	"encoding/json"
	"errors"
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
	name, why = defaultFinalizer(gvk, plural), "the controller cleans up before an object is deleted"
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

// checkFinalizer returns why a controller cannot do without a finalizer.
func (c *Controller[T]) checkFinalizer() error {
	why := c.why()
	switch {
	case !c.options.NoFinalizer:
		return nil
	case c.wraps():
		return errors.New("Options.NoFinalizer is set, but a reconciler of loop.Wrap looks after finalizers itself; leave NoFinalizer false")
	case why != "":
		return fmt.Errorf("Options.NoFinalizer is set, but objects need a finalizer because %s, which would never happen without one; "+
			"leave NoFinalizer false, or remove what needs the finalizer", why)
	}
	return nil
}

// nameFinalizer sets the finalizer that objects get, and the one that they do not need any more.
func (c *Controller[T]) nameFinalizer(mapper apimeta.RESTMapper) error {
	_, cleans := c.author.(Cleaner[T])
	if !cleans && !c.options.NoFinalizer {
		return nil
	}
	name := c.options.Finalizer
	if w, ok := c.author.(Decorator[T]); ok && name == "" {
		name, _ = w.Finalizer(c.gvk)
	}
	if name == "" && c.gvk.Group == "" {
		return fmt.Errorf("objects of kind %s need a finalizer, and those of Kubernetes' core group get no name for it; "+
			"set Options.Finalizer, for example to example.org/%s", c.gvk.Kind, c.name)
	}
	if name == "" {
		mapping, err := mapper.RESTMapping(c.gvk.GroupKind(), c.gvk.Version)
		if err != nil {
			return fmt.Errorf("the API server does not serve %s; install its CRD first: %w", c.gvk.GroupKind(), err)
		}
		name = defaultFinalizer(c.gvk, mapping.Resource.Resource)
	}
	if c.why() == "" {
		c.unneeded = name
	} else {
		c.finalizer = name
	}
	return nil
}

func defaultFinalizer(gvk schema.GroupVersionKind, plural string) string {
	return plural + "." + gvk.Group + "/finalizer"
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

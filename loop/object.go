package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// object is the object of a pass as the API server has it, with the writes of the pass to it.
type object[T client.Object] struct {
	c   *Controller[T]
	key types.NamespacedName
	// base is the object as far as this pass knows. It may be the cache's own: it is copied before
	// anything but its resourceVersion is changed.
	base T
	// seen is what the author's copy was made of, if base is a later version: the answer to a write of the pass, which has
	// what others wrote to the status meanwhile.
	seen  *T
	log   logr.Logger
	trace *trace.Pass
	// writes were sent, budget were allowed.
	writes, budget int
	// contested: another wrote to our part of the status while the pass did.
	contested bool
}

const (
	// commitTime is how long a write of the result may take: as long as an API server works on a request. What is given up earlier may
	// have reached it, and would be sent again.
	commitTime = time.Minute
	// stopTime is how long it may still take when the process shuts down.
	stopTime = 5 * time.Second
)

// commitContext outlives the deadline of the author's call and a shutdown, so that what happened is recorded.
func commitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	process, ok := ctx.Value(processKey{}).(context.Context)
	if !ok {
		return longer, cancel
	}
	stay := context.AfterFunc(process, func() { time.AfterFunc(stopTime, cancel) })
	return longer, func() { stay(); cancel() }
}

// finishing returns a context for a pass, which goes on while the process shuts down.
func finishing(process context.Context) context.Context { return ongoing{process} }

// ongoing has the values of the process's context, and does not end with it. Its value of processKey is the process's context. It is a type
// of its own, of one allocation, because each pass makes one.
type ongoing struct{ process context.Context } //nolint:containedctx // it is one itself

type processKey struct{}

// Deadline is none.
func (ongoing) Deadline() (deadline time.Time, ok bool) { return }

// Done never happens.
func (ongoing) Done() <-chan struct{} { return nil }

// Err is nil.
func (ongoing) Err() error { return nil }

// Value is that of the process.
func (o ongoing) Value(key any) any {
	if key == (processKey{}) {
		return o.process
	}
	return o.process.Value(key)
}

func (c *Controller[T]) fieldOwner() client.FieldOwner { return client.FieldOwner("trimtab-" + c.name) }

// copy returns a copy of the object that may be changed.
func (o *object[T]) copy() T {
	obj, _ := o.base.DeepCopyObject().(T)
	return obj
}

// given returns what the author's copy was made of.
func (o *object[T]) given() T {
	if o.seen != nil {
		return *o.seen
	}
	return o.base
}

// patchMetadata brings labels, annotations, owner references and finalizers to those of
// want in one request, locked by resourceVersion; the answer becomes the base.
func (o *object[T]) patchMetadata(ctx context.Context, want T) error {
	fields := metadataChanges(o.base, want)
	if len(fields) == 0 {
		return nil
	}
	patch, err := metadataPatch(o.base, want)
	if err != nil {
		return fmt.Errorf("compute the metadata patch: %w", err)
	}
	ctx, cancel := commitContext(ctx)
	defer cancel()
	target, err := o.patch(ctx, patch, fields)
	if apierrors.IsConflict(err) {
		target, err = o.patchDespiteStatus(ctx, want, fields, err)
	}
	if err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	if o.seen == nil {
		o.seen = new(o.base)
	}
	o.base = target
	return nil
}

// patch sends a merge patch of some fields.
func (o *object[T]) patch(ctx context.Context, patch []byte, fields []string) (T, error) {
	target := o.copy()
	err := o.c.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), o.c.fieldOwner())
	o.wrote("patch", "", fields, target.GetResourceVersion(), err)
	return target, err
}

// metadataChanges returns the paths at which the metadata of two objects differ that a pass may change.
func metadataChanges(a, b client.Object) []string {
	var fields []string
	if !maps.Equal(a.GetLabels(), b.GetLabels()) {
		fields = append(fields, "metadata.labels")
	}
	if !maps.Equal(a.GetAnnotations(), b.GetAnnotations()) {
		fields = append(fields, "metadata.annotations")
	}
	if !equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) {
		fields = append(fields, "metadata.ownerReferences")
	}
	if !slices.Equal(a.GetFinalizers(), b.GetFinalizers()) {
		fields = append(fields, "metadata.finalizers")
	}
	return fields
}

// metadataPatch returns the merge patch from the metadata of base to that of want, as far as a pass may
// change it, locked to the resourceVersion of base. To compute it from the whole objects costs several
// times as much.
func metadataPatch(base, want client.Object) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": changedMetadata(base, want)})
}

func changedMetadata(base, want client.Object) map[string]any {
	metadata := map[string]any{"resourceVersion": base.GetResourceVersion()}
	for key, of := range map[string]func(client.Object) map[string]string{
		"labels": client.Object.GetLabels, "annotations": client.Object.GetAnnotations,
	} {
		if changed := mapPatch(of(base), of(want)); len(changed) > 0 {
			metadata[key] = changed
		}
	}
	if refs := want.GetOwnerReferences(); !equality.Semantic.DeepEqual(base.GetOwnerReferences(), refs) {
		metadata["ownerReferences"] = refs
	}
	if finalizers := want.GetFinalizers(); !slices.Equal(base.GetFinalizers(), finalizers) {
		metadata["finalizers"] = finalizers
	}
	return metadata
}

// mapPatch returns what differs between two maps; nil removes a key.
func mapPatch(base, want map[string]string) map[string]any {
	changed := map[string]any{}
	for key := range base {
		if _, kept := want[key]; !kept {
			changed[key] = nil
		}
	}
	for key, value := range want {
		if before, had := base[key]; !had || before != value {
			changed[key] = value
		}
	}
	return changed
}

// wrote notes a write to the object, for the trace, the budget and the stale gate.
func (o *object[T]) wrote(verb, subresource string, fields []string, version string, err error) {
	o.writes++
	e := trace.Write{Verb: verb, Subresource: subresource, Fields: fields, ResourceVersion: version}
	result := "ok"
	if err != nil {
		e.Err, e.ResourceVersion, result = plain.Error(err), "", metric.Reason(err)
	} else {
		o.c.memory.wrote(o.base, version)
	}
	writes.WithLabelValues(o.c.name, o.c.gvk.Kind, or(subresource, "metadata"), result).Inc()
	o.trace.Emit(e)
}

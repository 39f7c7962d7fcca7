package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// ensureFinalizer puts the finalizer on, together with what the author prepares, before
// anything else happens. The pass goes on with the server's answer.
func (p *pass[T]) ensureFinalizer(ctx context.Context) error {
	if p.c.finalizer == "" || controllerutil.ContainsFinalizer(p.base, p.c.finalizer) {
		return nil
	}
	want, _ := p.base.DeepCopyObject().(T)
	if preparer, ok := p.c.author.(Preparer[T]); ok {
		p.run.Obj = want
		if err := p.guardedPrepare(ctx, preparer); err != nil {
			return prepareError{err}
		}
	}
	controllerutil.AddFinalizer(want, p.c.finalizer)
	p.budget++
	// Noted before the write: its answer may come after the end of the object.
	p.c.memory.finalize(p.key, p.base.GetUID())
	return p.patchMetadata(ctx, want)
}

func (p *pass[T]) guardedPrepare(ctx context.Context, preparer Preparer[T]) error {
	var err error
	if crash := guard.Aside(code, "Prepare", func() { err = preparer.Prepare(ctx, p.run) }); crash != nil {
		p.run.log.Error(crash, "Prepare did not return", "stack", guard.Stack(crash))
		return crash
	}
	return readable(err)
}

// prepareError is the author's failure to prepare, as against one of our write.
type prepareError struct{ error }

func (e prepareError) Unwrap() error { return e.error }

// removeFinalizer takes our entry, and no other, off the object.
func (p *pass[T]) removeFinalizer(ctx context.Context) error {
	i := slices.Index(p.base.GetFinalizers(), p.c.finalizer)
	switch {
	case p.vanished != nil:
		p.setState(stateGone, "", "")
		return nil
	case i < 0:
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": p.base.GetUID()},
		{"op": "test", "path": path, "value": p.c.finalizer},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return err
	}
	obj, _ := p.base.DeepCopyObject().(T)
	ctx, cancel := commitContext(ctx)
	defer cancel()
	err = p.c.client.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, patch), p.c.fieldOwner())
	p.wrote("patch", "", []string{"metadata.finalizers"}, obj.GetResourceVersion(), err)
	switch {
	case apierrors.IsNotFound(err): // gone already
	case apierrors.IsInvalid(err) && p.movedOn(ctx): // the test failed
		return apierrors.NewConflict(schemaResource(p.c.gvk), p.key.Name, err)
	case err != nil:
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	p.c.memory.release(p.key, p.base.GetUID())
	p.setState(stateGone, "", "")
	return nil
}

// movedOn tells whether others changed the finalizers since the object was read. An admission
// policy answers with the same code as a patch whose test failed, for as long as the object is as
// it is.
func (p *pass[T]) movedOn(ctx context.Context) bool {
	now := cached.New[T]()
	liveReads.WithLabelValues(p.c.name).Inc()
	err := p.c.live.Get(ctx, p.key, now)
	return err != nil || now.GetUID() != p.base.GetUID() || !slices.Equal(now.GetFinalizers(), p.base.GetFinalizers())
}

// stateGone ends the row of states that a trace shows; no object ever has it.
const stateGone = "(gone)"

// patchMetadata brings labels, annotations, owner references and finalizers to those of
// want in one request, locked by resourceVersion; the answer becomes the pass's base.
func (p *pass[T]) patchMetadata(ctx context.Context, want T) error {
	fields := metadataChanges(p.base, want)
	if len(fields) == 0 {
		return nil
	}
	target, _ := p.base.DeepCopyObject().(T)
	target.SetLabels(want.GetLabels())
	target.SetAnnotations(want.GetAnnotations())
	target.SetOwnerReferences(want.GetOwnerReferences())
	target.SetFinalizers(want.GetFinalizers())
	ctx, cancel := commitContext(ctx)
	defer cancel()
	patch := client.MergeFromWithOptions(p.base, client.MergeFromWithOptimisticLock{})
	err := p.c.client.Patch(ctx, target, patch, p.c.fieldOwner())
	p.wrote("patch", "", fields, target.GetResourceVersion(), err)
	if err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	p.base = target
	return nil
}

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

// persist is [Run.Persist]: metadata only, now.
func (p *pass[T]) persist(ctx context.Context) error {
	if p.vanished != nil || !metadataChanged(p.base, p.run.Obj) {
		return nil
	}
	p.budget++
	if err := p.patchMetadata(ctx, p.run.Obj); apierrors.IsConflict(err) {
		return Outdated(err)
	} else if err != nil {
		return err
	}
	p.run.Obj.SetResourceVersion(p.base.GetResourceVersion())
	return nil
}

func metadataChanged(a, b client.Object) bool { return len(metadataChanges(a, b)) > 0 }

// commit writes what the pass changed: at most one metadata patch and one status write.
func (p *pass[T]) commit(ctx context.Context, v verdict) error {
	changed, err := p.specChanged()
	if err != nil {
		return err
	}
	if changed {
		p.run.Obj, _ = p.base.DeepCopyObject().(T)
		*p.run.conditions = emptySet()
		p.run.reported, p.run.stateSet = nil, false
		v = verdict{
			ready: metav1.ConditionFalse, reason: "SpecChanged", known: "SpecChanged", message: errSpecChanged.Error(),
			spoken: true, stalled: true, failed: true, state: stateFailed,
		}
		p.run.log.Error(errSpecChanged, "programming error")
	}
	// The status to write is settled before the metadata patch, whose answer brings the
	// server's old one.
	desired, _ := p.run.Obj.DeepCopyObject().(T)
	p.run.Obj.SetFinalizers(p.base.GetFinalizers()) // ours alone
	refused := p.patchMetadata(ctx, p.run.Obj)
	switch {
	case apierrors.IsConflict(refused), apierrors.IsNotFound(refused):
		return refused
	case refused != nil && !v.failed: // what people are told is another write, which may pass
		v = p.refusal(refused)
	}
	return cmp.Or(refused, p.commitStatus(ctx, desired, v))
}

// commitStatus writes what the pass changed in status.
func (p *pass[T]) commitStatus(ctx context.Context, desired T, v verdict) error {
	if s, ok := reporting(desired); ok {
		return p.report(ctx, desired, s, v)
	}
	return p.patchStatus(ctx, desired)
}

// refusal is what people are told of a write of metadata that failed: an admission webhook or a
// policy may refuse it for as long as the object is as it is.
func (p *pass[T]) refusal(err error) verdict {
	*p.run.conditions = emptySet()
	p.run.reported, p.run.stateSet = nil, false
	v := verdict{
		ready: metav1.ConditionUnknown, reason: reasonWriteRefused, known: reasonWriteRefused,
		message: "cannot " + plain.Error(err) + "; retrying", spoken: true, failed: true, reconciling: true, state: stateFailed,
	}
	p.run.conditions.True(api.ConditionFailed, v.reason, v.message)
	if !p.base.GetDeletionTimestamp().IsZero() {
		v.ready, v.state = metav1.ConditionFalse, stateTerminating
		p.run.conditions.True(api.ConditionDeleting, v.reason, v.message)
	}
	return v
}

// reasonWriteRefused is that of an object whose metadata cannot be written.
const reasonWriteRefused = "WriteRefused"

// specChanged tells whether the author touched anything but metadata and status.
func (p *pass[T]) specChanged() (bool, error) {
	if sameBesides(p.base, p.run.Obj) {
		return false, nil
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.base)
	if err != nil {
		return false, err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.run.Obj)
	if err != nil {
		return false, err
	}
	for _, u := range []map[string]any{before, after} {
		delete(u, "metadata")
		delete(u, "status")
		delete(u, "apiVersion")
		delete(u, "kind")
	}
	return !equality.Semantic.DeepEqual(before, after), nil
}

// told is the finished report of the pass: the author's own, or else what his outcome and the
// conditions that he set come to.
func (p *pass[T]) told(v verdict) conditions.Report {
	if p.run.reported == nil {
		state := v.stateBeside(p.run.conditions)
		if p.run.stateSet {
			state = p.state
		}
		return v.report(p.run.conditions, state)
	}
	r := p.run.reported.Fit()
	*p.run.conditions = conditions.SetOf(r.Conditions)
	return r
}

// report completes the common status and applies it if it differs from the server's.
func (p *pass[T]) report(ctx context.Context, desired T, s *api.Status, v verdict) error {
	observed, _ := reporting(p.base)
	r := p.told(v)
	generation := p.base.GetGeneration()
	s.Conditions = p.run.conditions.Merge(observed.Conditions, generation, time.Now())
	s.ObservedGeneration = generation
	s.AppliedGeneration = p.applied(r, s.AppliedGeneration)
	if token := p.base.GetAnnotations()[api.AnnotationReconcile]; token != "" {
		s.HandledReconcile = token
	}
	p.setState(r.State, r.Reason, r.Message)
	s.State, s.Message = r.State, r.Message
	if p.sameStatusAs(p.base, desired, observed, s) && !p.c.memory.touched(p.base) {
		p.remember(r, observed)
		return nil
	}
	if err := p.applyStatus(ctx, desired); err != nil {
		return err
	}
	p.tell(r, p.remember(r, observed))
	return nil
}

// applied is the generation of the last pass that succeeded. A process that has reported on the
// object knows it; another one goes by what the status says.
func (p *pass[T]) applied(r conditions.Report, said int64) int64 {
	generation := p.base.GetGeneration()
	if said > generation { // of a backup, or of somebody's making
		said = 0
	}
	p.c.memory.with(p.key, func(k *remembered) {
		switch {
		case r.Applied:
			k.applied = new(generation)
		case k.applied == nil:
			k.applied = new(said)
		}
		said = *k.applied
	})
	return said
}

// sameStatusAs compares the status to report with the one that server holds. observed and s are the
// common parts of the two.
func (p *pass[T]) sameStatusAs(server, desired T, observed, s *api.Status) bool {
	if !conditionsEqual(observed, s) {
		return false
	}
	wanted := s.Conditions
	s.Conditions = observed.Conditions
	same := sameStatus(server, desired)
	s.Conditions = wanted
	if same {
		return true
	}
	have, err := statusOf(server)
	if err != nil {
		return false
	}
	want, err := statusOf(desired)
	if err != nil {
		return false
	}
	if have == nil { // nothing reported yet
		return want == nil
	}
	delete(have, "conditions")
	delete(want, "conditions")
	return equality.Semantic.DeepEqual(have, want)
}

// applyStatus sends our part of the status by server-side apply: conditions of others are
// left out, so that they stay theirs.
func (p *pass[T]) applyStatus(ctx context.Context, desired T) error {
	fields, err := statusOf(desired)
	if err != nil {
		return err
	}
	if list, ok := fields["conditions"].([]any); ok {
		fields["conditions"] = slices.DeleteFunc(list, func(c any) bool {
			m, _ := c.(map[string]any)
			t, _ := m["type"].(string)
			return p.run.conditions.Foreign(t)
		})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(p.c.gvk)
	u.SetName(p.key.Name)
	u.SetNamespace(p.key.Namespace)
	u.SetUID(p.base.GetUID())
	ctx, cancel := commitContext(ctx)
	defer cancel()
	err = p.c.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, p.c.fieldOwner())
	p.wrote("apply", "status", []string{"status"}, u.GetResourceVersion(), err)
	switch {
	case apierrors.IsInvalid(err):
		return p.replaceStatus(ctx, desired, err)
	case err != nil:
		return p.unwritten(ctx, err)
	}
	return p.removeLeftovers(ctx, desired, u)
}

// removeLeftovers takes out of the status what we mean to be gone but another field manager
// wrote: the remains of a backup, of a controller under its former name, of tampering. An
// apply cannot do that. What our type does not know is not ours to remove.
func (p *pass[T]) removeLeftovers(ctx context.Context, desired T, applied *unstructured.Unstructured) error {
	server := cached.New[T]()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, server); err != nil {
		return fmt.Errorf("read the status back: %w", err)
	}
	have, _ := reporting(server)
	want, _ := reporting(desired)
	p.base.SetResourceVersion(server.GetResourceVersion())
	foreign := func(c metav1.Condition) bool { return p.run.conditions.Foreign(c.Type) }
	want.Conditions = slices.DeleteFunc(want.Conditions, foreign)
	for _, c := range have.Conditions { // others' are as they are now
		if foreign(c) {
			want.Conditions = append(want.Conditions, c)
		}
	}
	if p.sameStatusAs(server, desired, have, want) {
		return nil
	}
	p.budget++
	return p.sendStatus(ctx, server, desired, server.GetResourceVersion())
}

// patchStatus writes what the author changed in the status of a kind whose status is not
// ours to report on.
func (p *pass[T]) patchStatus(ctx context.Context, desired T) error {
	return p.sendStatus(ctx, p.base, desired, "")
}

// sendStatus patches the status from what server has to that of desired, if they differ.
func (p *pass[T]) sendStatus(ctx context.Context, server, desired T, lock string) error {
	have, err := statusOf(server)
	if err != nil {
		return err
	}
	want, err := statusOf(desired)
	if err != nil || equality.Semantic.DeepEqual(have, want) {
		return err
	}
	data, err := statusPatch(have, want, lock)
	if err != nil {
		return fmt.Errorf("compute the status patch: %w", err)
	}
	ctx, cancel := commitContext(ctx)
	defer cancel()
	target, _ := server.DeepCopyObject().(T)
	err = p.c.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), p.c.fieldOwner())
	p.wrote("patch", "status", []string{"status"}, target.GetResourceVersion(), err)
	return p.unwritten(ctx, err)
}

func (p *pass[T]) event(kind, reason, note string) {
	p.c.events.Eventf(p.base, nil, kind, plain.Reason(reason), "Reconcile", "%s", plain.Line(note))
}

func (p *pass[T]) setState(state, reason, message string) {
	if state == p.state {
		return
	}
	p.trace.Emit(trace.Transition{From: p.state, To: state, Reason: reason, Message: message})
	p.state = state
}

// wrote notes a write to the object, for the trace, the budget and the stale gate.
func (p *pass[T]) wrote(verb, subresource string, fields []string, version string, err error) {
	p.writes++
	e := trace.Write{Verb: verb, Subresource: subresource, Fields: fields, ResourceVersion: version}
	result := "ok"
	if err != nil {
		e.Err, e.ResourceVersion, result = plain.Error(err), "", string(apierrors.ReasonForError(err))
	} else {
		p.c.memory.wrote(p.base, version)
	}
	writes.WithLabelValues(p.c.name, or(subresource, "metadata"), result).Inc()
	p.trace.Emit(e)
}

func (c *Controller[T]) fieldOwner() client.FieldOwner { return client.FieldOwner("trimtab-" + c.name) }

// commitContext outlives a deadline and a shutdown, so that what happened is recorded.
func commitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), commitTime)
}

package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/internal/report"
)

// persist is [Run.Persist]: metadata only, now.
func (p *pass[T]) persist(ctx context.Context) error {
	if p.vanished != nil || len(metadataChanges(p.base, p.run.Obj)) == 0 {
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

// completeSpec is [Run.CompleteSpec].
func (p *pass[T]) completeSpec(ctx context.Context, spec map[string]any) error {
	if p.vanished != nil {
		return nil
	}
	p.budget++
	patch, err := json.Marshal(map[string]any{"metadata": changedMetadata(p.base, p.run.Obj), "spec": spec})
	if err != nil {
		return fmt.Errorf("compute the patch of the spec: %w", err)
	}
	ctx, cancel := commitContext(ctx)
	defer cancel()
	target, err := p.patch(ctx, patch, []string{"spec"})
	switch {
	case apierrors.IsConflict(err):
		return Outdated(err)
	case err != nil:
		return fmt.Errorf("write the spec: %w", err)
	}
	target.SetManagedFields(nil)
	target.GetObjectKind().SetGroupVersionKind(p.c.gvk)
	p.base = target
	p.restore()
	return nil
}

// narrow drops the changes of the author that are not to be written.
func (p *pass[T]) narrow(m WriteMode) error {
	changed := p.run.Obj
	switch m {
	case WriteChanges:
		return nil
	case WriteStatus:
		given := p.given()
		p.restore()
		p.seen = &given
		with, err := p.c.fields.withStatusOf(changed, p.run.Obj)
		if err != nil {
			return err
		}
		p.run.Obj, _ = with.(T)
		return nil
	case WriteMetadata:
		p.restore()
		p.run.Obj.SetLabels(changed.GetLabels())
		p.run.Obj.SetAnnotations(changed.GetAnnotations())
		p.run.Obj.SetOwnerReferences(changed.GetOwnerReferences())
	case WriteNothing:
		p.restore()
	default:
		p.restore()
		return fmt.Errorf("the outcome has the unknown %s; use one of the constants of package loop", m)
	}
	return nil
}

// commit writes what the pass changed: at most one metadata patch and one status write.
func (p *pass[T]) commit(ctx context.Context, v verdict) error {
	changed, err := p.c.fields.specChanged(p.base, p.run.Obj)
	if err != nil {
		return err
	}
	if changed {
		p.restore()
		p.forget()
		v, p.silent = verdictOfSpecChanged(), false
		p.log.Error(errSpecChanged, "programming error")
	}
	p.run.Obj.SetFinalizers(p.base.GetFinalizers()) // ours alone
	refused := p.patchMetadata(ctx, p.run.Obj)      // its answer becomes the base, and leaves the status to write as it is
	switch {
	case apierrors.IsConflict(refused), apierrors.IsNotFound(refused):
		return refused
	case refused != nil && !v.failed: // the status is another write, which may pass
		v = p.refusal(refused)
	}
	return cmp.Or(refused, p.commitStatus(ctx, v))
}

// errSpecChanged is what a pass ends with whose author changed what users own.
var errSpecChanged = errors.New("the controller changed the object's spec in memory, which belongs to its users; " +
	"nothing was written: this is a bug in the controller, which must change a copy of it (DeepCopy), or call Run.CompleteSpec")

// refusal is the verdict on a write of metadata that failed: an admission webhook or a policy may
// refuse it for as long as the object is as it is.
func (p *pass[T]) refusal(err error) verdict {
	p.forget()
	v := verdict{
		ready: metav1.ConditionUnknown, reason: reasonWriteRefused, known: reasonWriteRefused,
		message: "cannot " + plain.Error(err) + "; retrying", spoken: true, failed: true, reconciling: true, state: stateFailed,
	}
	p.conditions.True(api.ConditionFailed, v.reason, v.message)
	if !p.base.GetDeletionTimestamp().IsZero() {
		v.ready, v.state = metav1.ConditionFalse, stateTerminating
		p.conditions.True(api.ConditionDeleting, v.reason, v.message)
	}
	return v
}

// reasonWriteRefused is that of an object whose metadata cannot be written.
const reasonWriteRefused = "WriteRefused"

// report is the finished report of the pass: the author's own, or else what the outcome and the
// conditions that the author set come to.
func (p *pass[T]) report(v verdict) conditions.Report {
	if p.reported == nil {
		p.keepHistory(v)
		state := v.stateBeside(&p.conditions)
		if p.stateSet {
			state = p.state
		}
		return v.report(&p.conditions, stateOf(p.run.Obj, state))
	}
	return report.Normalize(*p.reported)
}

// keepHistory keeps, as False, that the object was created or updated if the pass failed before its author could say so.
func (p *pass[T]) keepHistory(v verdict) {
	s, ok := reporting(p.base)
	if !ok || !v.failed || p.c.wraps() {
		return
	}
	for _, kind := range []string{api.ConditionCreating, api.ConditionUpdating} {
		if meta.FindStatusCondition(s.Conditions, kind) != nil && p.conditions.Get(kind) == nil {
			p.conditions.False(kind, "NotInProgress", "")
		}
	}
}

// commitStatus completes the common status of the object and writes the status if it differs from
// the server's. The status of a kind without the common one is the author's alone.
func (p *pass[T]) commitStatus(ctx context.Context, v verdict) error {
	if p.silent {
		return nil
	}
	s, ok := reporting(p.run.Obj)
	write := status[T]{object: &p.object, desired: p.run.Obj, common: ok && p.c.wraps()}
	if !ok {
		p.observe(v)
		return write.patch(ctx, p.given(), write.lock()) // not what others wrote to the status meanwhile
	}
	observed, _ := reporting(p.base)
	r := p.report(v)
	write.report = r
	if err := p.recallApplied(ctx, s.AppliedGeneration); err != nil {
		return err
	}
	p.complete(s, observed, r)
	p.setState(r.State, r.Reason, r.Message)
	if write.same(p.base) && (write.common || !p.c.memory.touched(p.base)) {
		p.remember(r, observed, false)
		return nil
	}
	stamp(p.run.Obj)
	err := write.apply(ctx)
	if p.lastPassUnserved(s, err) {
		err = write.apply(ctx)
	}
	if err != nil {
		return err
	}
	p.tell(r, p.remember(r, observed, write.least))
	return nil
}

// complete makes the common status say what r says.
func (p *pass[T]) complete(s, observed *api.Status, r conditions.Report) {
	generation := p.base.GetGeneration()
	if !mergedIn(r, observed.Conditions, generation) || !slices.Equal(s.Conditions, observed.Conditions) {
		s.Conditions = r.Merge(observed.Conditions, generation, time.Now())
	}
	s.ObservedGeneration = generation
	s.AppliedGeneration = p.applied(r, s.AppliedGeneration)
	if token := p.base.GetAnnotations()[api.AnnotationReconcile]; token != "" {
		s.HandledReconcile = token
	}
	s.State, s.Message = r.State, r.Message
	s.LastPass = p.lastPass(r, observed.LastPass)
}

// observe sets status.observedGeneration of a kind of which the loop sets that alone.
func (p *pass[T]) observe(v verdict) {
	if !p.c.observes {
		return
	}
	observed := p.c.fields.observedGeneration(p.run.Obj)
	if *observed = *p.c.fields.observedGeneration(p.given()); v.succeeded {
		*observed = p.base.GetGeneration()
	}
}

// mergedIn reports whether an object that has the conditions in list has all that Merge would return for
// it.
func mergedIn(r conditions.Report, list []metav1.Condition, generation int64) bool {
	for i, c := range list {
		if i > 0 && list[i-1].Type >= c.Type || meta.FindStatusCondition(r.Conditions, c.Type) == nil && !r.Foreign(c.Type) {
			return false
		}
	}
	for _, c := range r.Conditions {
		has := meta.FindStatusCondition(list, c.Type)
		if has == nil {
			return false
		}
		c.ObservedGeneration, c.LastTransitionTime = cmp.Or(c.ObservedGeneration, generation), has.LastTransitionTime
		if c != *has {
			return false
		}
	}
	return true
}

// applied is the generation of the last pass that succeeded. A process that has reported on the
// object knows it; another one goes by what the status says.
func (p *pass[T]) applied(r conditions.Report, said int64) int64 {
	generation := p.base.GetGeneration()
	p.c.memory.with(p.key, func(k *remembered) {
		switch {
		case r.Applied:
			k.applied, k.recalled = new(generation), false
		case k.applied == nil:
			k.applied, k.recalled = new(credible(said, generation)), true
		}
		said = *k.applied
	})
	return said
}

// recallApplied asks the API server if the status says that a generation was applied of which this process, which has
// written nothing yet, knows nothing: its first copy may have been old, or the status is of somebody's making.
func (p *pass[T]) recallApplied(ctx context.Context, said int64) error {
	if p.vanished != nil || p.c.memory.proven(p.base) || !p.c.memory.appliedOther(p.base, credible(said, p.base.GetGeneration())) {
		return nil
	}
	return p.c.compare(ctx, p.key, p.base)
}

// credible is the generation that a status says was applied, and 0 if the object has not had that: the status is of a
// backup, or of somebody's making.
func credible(said, generation int64) int64 {
	if said > generation {
		return 0
	}
	return said
}

// appliedBy returns the generation that the status of an object says was applied. It reports false if somebody else
// than owner wrote that.
func appliedBy(obj client.Object, owner string) (generation int64, ours bool) {
	s, ok := reporting(obj)
	if !ok {
		return 0, false
	}
	return credible(s.AppliedGeneration, obj.GetGeneration()), !writtenByOthers(obj, owner, fieldApplied)
}

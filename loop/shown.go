package loop

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// shown is what people were told of an object last. The zero value is nothing.
type shown struct {
	news    conditions.News
	message string
	// kind, state and reason are how the object is counted.
	kind, state, reason string
}

// forget no longer counts an object.
func (s *shown) forget() {
	if s.kind != "" {
		objects.WithLabelValues(s.kind, s.state, s.reason).Dec()
	}
	*s = shown{}
}

// remember keeps what people are told by r and returns what they were told before: by this
// process or, if it has told nothing yet, by the status that another one left.
func (p *pass[T]) remember(r conditions.Report, observed *api.Status) shown {
	before := shown{news: conditions.NewsOf(observed), message: observed.Message}
	now := shown{news: r.News(), message: r.Message, kind: p.c.gvk.Kind, state: r.State, reason: or(r.Known, r.Reason)}
	p.c.memory.with(p.key, func(k *remembered) {
		if k.shown.kind != "" {
			before = k.shown
		}
		k.shown.forget()
		k.shown, k.unwritable = now, k.unwritable && p.least
		objects.WithLabelValues(now.kind, now.state, now.reason).Inc()
	})
	return before
}

// tell writes one line to the log and records one event for a transition that people can
// see. A failure that repeats itself is none; one for another reason is told in the log.
func (p *pass[T]) tell(r conditions.Report, before shown) {
	moved := before.news != r.News()
	if !moved && (before.message == r.Message || !r.Event.Warning) {
		return
	}
	p.run.log.Info(r.Message, "from", before.news.State, "to", r.State, "reason", r.Reason)
	if moved && r.Event.Reason != "" {
		p.event(r.Event.Type(), r.Event.Reason, r.Event.Note)
	}
}

// unwritten explains a status write that failed. "Not found" may mean that the object is
// gone, which is well, or that its kind has no status to write, which would leave people
// without a word for ever.
func (p *pass[T]) unwritten(ctx context.Context, err error) error {
	if apierrors.IsForbidden(err) { // nothing but an event can tell
		p.complain(err, "StatusForbidden")
	}
	if !apierrors.IsNotFound(err) {
		return wrap("write status", err)
	}
	now := cached.New[T]()
	switch get := p.c.live.Get(ctx, p.key, now); {
	case apierrors.IsNotFound(get), get == nil && now.GetUID() != p.base.GetUID():
		return nil
	case get != nil:
		return wrap("write status", get)
	}
	kind := p.c.gvk.Kind
	err = fmt.Errorf("the status of %s %s cannot be written though the object exists; add the status subresource to the CRD of %s "+
		"(spec.versions[].subresources: {status: {}})", kind, p.key, kind)
	p.complain(err, "StatusNotServed")
	return err
}

// complain tells of a status that the API server does not take, once for each object.
func (p *pass[T]) complain(err error, reason string) {
	unwritable.WithLabelValues(p.c.name, reason).Inc()
	var told bool
	p.c.memory.with(p.key, func(r *remembered) { told, r.unwritable = r.unwritable, true })
	if !told {
		p.run.log.Error(err, "the status cannot be written", "reason", reason)
		p.event(corev1.EventTypeWarning, reason, plain.Error(err))
	}
}

// replaceStatus writes a status that cannot be applied. One cause is a condition of ours of
// which somebody else wrote a part: leaving it out of an apply takes away our part and leaves
// his, which is no whole condition. So the status is replaced; if that is refused, too, it is
// what we say that the API server does not take.
func (p *pass[T]) replaceStatus(ctx context.Context, desired T, refused error) error {
	p.budget++
	err := p.sendStatus(ctx, p.base, desired, p.base.GetResourceVersion())
	if !apierrors.IsInvalid(err) {
		return err
	}
	return p.sendLeast(ctx, desired, refused)
}

// sendLeast writes state, message and Ready where the API server refuses the whole status,
// and says so. What cannot be read is worth less than the reason why.
func (p *pass[T]) sendLeast(ctx context.Context, desired T, refused error) error {
	p.complain(refused, "StatusRefused")
	p.least = true
	p.budget++
	s, _ := reporting(desired)
	note := "; the rest of the status is refused by the API server: " + plain.Error(refused)
	least := api.Status{
		ObservedGeneration: s.ObservedGeneration, State: plain.Clip(s.State, longestState),
		Message: plain.Line(plain.Clip(s.Message, plain.Longest/2) + note),
	}
	if ready := meta.FindStatusCondition(s.Conditions, api.ConditionReady); ready != nil {
		least.Conditions = []metav1.Condition{*ready}
	}
	data, err := json.Marshal(map[string]any{"status": least})
	if err != nil {
		return fmt.Errorf("write the least of the status: %w", err)
	}
	target, _ := p.base.DeepCopyObject().(T)
	ctx, cancel := commitContext(ctx)
	defer cancel()
	err = p.c.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), p.c.fieldOwner())
	p.wrote("patch", "status", []string{"status"}, target.GetResourceVersion(), err)
	return p.unwritten(ctx, err)
}

// longestState is how much of a state is kept where the status was refused.
const longestState = 64

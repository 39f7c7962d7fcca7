package loop

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/trace"
)

// event records an event about the object.
func (o *object[T]) event(kind, reason, note string) {
	o.c.events.Eventf(o.base, nil, kind, plain.Reason(reason), "Reconcile", "%s", plain.Line(note))
}

// setState notes a change of state in the trace.
func (p *pass[T]) setState(state, reason, message string) {
	if state == p.state {
		return
	}
	p.trace.Emit(trace.Transition{From: p.state, To: state, Reason: reason, Message: message})
	p.state = state
}

// shown is what an object's status said last. The zero value is nothing.
type shown struct {
	news    news
	message string
	// as is how the object is counted.
	as standing
}

// news is the part of a status whose changes are reported: the state, Ready, the reason of the present,
// and whether annotations restrict the operator. A repeated failure does not change it.
type news struct {
	State, Ready, Reason, Paused, Policy string
}

func newsOf(state string, conditions []metav1.Condition) news {
	n := news{State: state}
	for _, t := range [...]string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
		if c := meta.FindStatusCondition(conditions, t); c != nil {
			n.Reason = c.Reason
		}
	}
	is := func(t string) string {
		if c := meta.FindStatusCondition(conditions, t); c != nil {
			return string(c.Status)
		}
		return ""
	}
	n.Ready, n.Paused, n.Policy = is(api.ConditionReady), is(api.ConditionPaused), is(api.ConditionPolicyInvalid)
	return n
}

// forget no longer counts an object.
func (s *shown) forget() {
	if s.as.kind != "" {
		population.add(s.as, -1)
	}
	*s = shown{}
}

// remember keeps what r says and returns what the object said before: by this process or, if it has
// not reported yet, by the status that another one left. least is true if the API server takes no
// more than the least of the status.
func (o *object[T]) remember(r conditions.Report, observed *api.Status, least bool) shown {
	now := shown{news: newsOf(r.State, r.Conditions), message: r.Message, as: countedAs(o.c.gvk.Kind, r)}
	var before shown
	o.c.memory.with(o.key, func(k *remembered) {
		before = k.shown
		o.c.reported(k, r)
		if before.as != now.as {
			k.shown.forget()
			population.add(now.as, 1)
		}
		k.shown, k.unwritable = now, k.unwritable && least
	})
	if before.as.kind == "" {
		return shown{news: newsOf(observed.State, observed.Conditions), message: observed.Message}
	}
	return before
}

// tell writes one line to the log and records one event for a transition that users can
// see. A failure that repeats itself is none; one for another reason is logged.
func (o *object[T]) tell(r conditions.Report, before shown) {
	news := newsOf(r.State, r.Conditions)
	moved := before.news != news
	if !moved && (before.message == r.Message || !r.Event.Warning) {
		return
	}
	o.log.Info(cmp.Or(r.Message, "the state is "+cmp.Or(r.State, r.Reason, "not known")), "from", before.news.State, "to", r.State, "reason", r.Reason)
	if moved && r.Event.Reason != "" {
		o.event(r.Event.Type(), r.Event.Reason, r.Event.Note)
	}
}

// complain reports a status that the API server does not take, once for each object.
func (o *object[T]) complain(err error, reason string) {
	unwritable.WithLabelValues(o.c.name, o.c.gvk.Kind, reason).Inc()
	var known bool
	o.c.memory.with(o.key, func(r *remembered) { known, r.unwritable = r.unwritable, true })
	if !known {
		o.log.Error(err, "the status cannot be written", "reason", reason)
		o.event(corev1.EventTypeWarning, reason, plain.Error(err))
	}
}

package loop

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/trace"
)

// vanished is an object that went although our finalizer was on it, see [part].
type vanished struct {
	last client.Object
	// begun: a pass worked on it; reported: an event says so; confirmed: the API server does not
	// have it.
	begun, reported, confirmed bool
	// why it is not cleaned up yet.
	why string
}

// Reasons of events about objects that vanished.
const (
	reasonVanished  = "Vanished"
	reasonCleanedUp = "CleanedUp"
	reasonGone      = "GoneUnseen"
	// reasonPredecessor is that of an object whose predecessor of the same name is not cleaned up.
	reasonPredecessor = "PredecessorNotCleanedUp"
)

// unheardOf is the longest time between two passes over a vanished object, for which there are no events.
const unheardOf = 10 * time.Minute

// deleteUnderWay is how long a DELETE may be in progress if the API server or an admission webhook is
// slow: requests time out after a minute.
const deleteUnderWay = 2 * time.Minute

// gone is called when an object was removed. seen reports whether the watch delivered the deletion.
func (c *Controller[T]) gone(last T, seen bool) {
	var how removal
	c.memory.with(client.ObjectKeyFromObject(last), func(r *remembered) {
		r.gone = true
		uid := last.GetUID()
		how = judgeRemoval(removalFacts{
			finalizer: c.finalizer != "" && controllerutil.ContainsFinalizer(last, c.finalizer),
			marked:    !last.GetDeletionTimestamp().IsZero(), seen: seen, released: r.released == uid,
			fresh: r.finalized == uid && time.Since(r.finalizedAt) < deleteUnderWay, met: r.uid == uid,
		})
		if how == removalVanished {
			r.vanished = append(r.vanished, &vanished{last: last})
		}
	})
	switch how {
	case removalOrderly:
	case removalVanished: // reported by its pass
	case removalUnclear:
		note := "the object is gone, and the watch did not show how; it had its finalizer when it was last seen, so check whether something is left of it"
		c.reportGone(last, corev1.EventTypeWarning, reasonGone, note)
		c.log.Info(note, "object", client.ObjectKeyFromObject(last), "uid", last.GetUID(), "finalizer", c.finalizer)
	}
}

// reportGone counts an object that vanished and records an event about it.
func (c *Controller[T]) reportGone(last T, kind, reason, note string) {
	vanishings.WithLabelValues(c.name, c.gvk.Kind, reason).Inc()
	c.events.Eventf(last, nil, kind, reason, "Cleanup", "%s", note)
}

// undo cleans up after the vanished objects of that name, oldest first, and reports whether none is
// left. An existing object of the same name waits until then, because it may use the resources that are
// still to be deleted.
func (c *Controller[T]) undo(ctx context.Context, key types.NamespacedName) (reconcile.Result, error, bool) {
	for {
		v := c.memory.nextVanished(key)
		if v == nil {
			return reconcile.Result{}, nil, true
		}
		last, _ := v.last.DeepCopyObject().(T)
		living, found, err := c.successor(ctx, key, v)
		if err != nil {
			return reconcile.Result{}, c.unhandled(key, fmt.Errorf("confirm that %s %s is gone: %w", c.gvk.Kind, key, err)), false
		}
		if found && living.GetUID() == last.GetUID() { // what seemed to be its end was none
			c.memory.finished(key, v)
			continue
		}
		v.confirmed = true
		last.SetDeletionTimestamp(new(metav1.Now()))
		p := c.open(ctx, last, v)
		ctx := p.into(ctx)
		end := p.undo(ctx)
		result, err := p.close(end)
		switch end.outcome {
		case removed:
		case notSelected:
			c.memory.finished(key, v)
			continue
		default:
			if found {
				c.wait(ctx, living, v)
			}
			return result, err, false
		}
		c.memory.finished(key, v)
		note := "cleaned up what belonged to the object that was deleted in spite of its finalizer"
		c.reportGone(last, corev1.EventTypeNormal, reasonCleanedUp, note)
		p.log.Info(note)
	}
}

// successor returns the object that has the name now. The first time it is read from the API server
// itself, which proves that v is gone. A UID never comes back, so the cache suffices from then on,
// however long the cleanup takes.
func (c *Controller[T]) successor(ctx context.Context, key types.NamespacedName, v *vanished) (T, bool, error) {
	if v.confirmed {
		return c.readCached(ctx, key)
	}
	return c.readLive(ctx, key)
}

// undo cleans up after a vanished object, if it was this controller's.
func (p *pass[T]) undo(ctx context.Context) ending {
	switch selected, err := p.selected(ctx); {
	case err != nil:
		return p.writeFailed(err)
	case !selected:
		return ending{outcome: notSelected}
	}
	if !p.vanished.reported {
		p.vanished.reported = true
		note := "the object was deleted in spite of its finalizer; what belongs to it is cleaned up from its last version"
		p.c.reportGone(p.base, corev1.EventTypeWarning, reasonVanished, note)
		p.log.Info(note, "finalizer", p.c.finalizer)
	}
	return p.cleanup(ctx)
}

// nextVanished returns the object of that name that is to be cleaned up next; nil if there is none.
// Failures of its earlier passes do not count as failures of the cleanup.
func (m *memory) nextVanished(key types.NamespacedName) *vanished {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[key]
	if !ok || len(r.vanished) == 0 {
		return nil
	}
	v := r.vanished[0]
	if r.meet(v.last.GetUID()); !v.begun {
		r.startAgain()
		r.shown.forget()
		v.begun = true
	}
	r.gone = true
	return v
}

// finished forgets a vanished object.
func (m *memory) finished(key types.NamespacedName, v *vanished) {
	m.with(key, func(r *remembered) {
		if len(r.vanished) > 0 && r.vanished[0] == v {
			r.vanished = r.vanished[1:]
		}
	})
}

// reportVanished records an event about a cleanup that is not done, once for each reason: nobody can
// read the object's status any more.
func (p *pass[T]) reportVanished(v verdict) {
	r := p.report(v)
	if p.vanished.why == r.Message {
		return
	}
	p.vanished.why = r.Message
	p.event(r.Event.Type(), or(r.Event.Reason, r.Reason), or(r.Event.Note, r.Message))
	p.log.Info("the cleanup of a vanished object is not done", "reason", r.Reason, "message", r.Message)
}

// wait lets the status of a living object say that its predecessor is not cleaned up yet.
func (c *Controller[T]) wait(ctx context.Context, living T, v *vanished) {
	p := c.passOver(living, RetryInfo{}, logf.FromContext(ctx))
	p.begin()
	why := verdict{
		ready: metav1.ConditionFalse, reason: reasonPredecessor, known: reasonPredecessor, reconciling: true, state: statePending,
		message: fmt.Sprintf("waiting: an earlier %s of this name is gone but not cleaned up: %s; "+
			"a restart of the operator leaves behind what belongs to it", c.gvk.Kind, v.why),
	}
	end := trace.End{Outcome: kindWait.String()}
	if err := p.commit(ctx, why); err != nil {
		end.Err = err.Error()
		p.log.Error(err, "cannot write what the object waits for")
	}
	p.trace.Emit(end)
}

package loop

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/conditions"
)

// What causes events, and what causes passes.
const (
	causeCreated = "created"
	causeUpdated = "updated"
	causeDeleted = "deleted"
	causeSource  = "source"

	causeEvent = "event"
	causeRetry = "retry"
	causeTime  = "time"
)

// measured is when the things happened to one object that metrics measure.
type measured struct {
	// queued is when the first event since the last pass came; zero if none did.
	queued time.Time
	// limited is until when the rate limit put off the pass. That is no time in the queue.
	limited time.Time
	// generation is the newest that a pass saw, and wanted is since when it is to become Ready; zero if it is, or was.
	generation int64
	wanted     time.Time
}

// event notes an event for an object, and reports whether it may go into the queue.
func (c *Controller[T]) event(key types.NamespacedName, cause string) bool {
	if !c.memory.event(key) {
		return false
	}
	received.WithLabelValues(c.name, c.gvk.Kind, cause).Inc()
	return true
}

// sourceEvent is the event of a source.
func (c *Controller[T]) sourceEvent(key types.NamespacedName) bool { return c.event(key, causeSource) }

// cause returns why a pass starts. Call it before start.
func (l *ladder) cause(now time.Time) string {
	switch {
	case l.events > l.seen:
		return causeEvent
	case !l.retryAt.IsZero() && !now.Before(l.retryAt):
		return causeRetry
	}
	return causeTime
}

// begun measures the start of a pass over obj. The caller holds the lock of the memory.
func (c *Controller[T]) begun(r *remembered, obj client.Object, now time.Time) {
	cause := r.ladder.cause(now)
	if cause == causeTime && r.unwritten > 0 { // the result of the last one could not be written
		cause = causeRetry
	}
	causes.WithLabelValues(c.name, c.gvk.Kind, cause).Inc()
	if cause == causeRetry {
		retries.WithLabelValues(c.name, c.gvk.Kind).Inc()
	}
	since := now
	if !r.measured.queued.IsZero() {
		since, r.measured.queued = r.measured.queued, time.Time{}
		ready := since
		if r.measured.limited.After(ready) {
			ready = r.measured.limited
		}
		queueSeconds.WithLabelValues(c.name, c.gvk.Kind).Observe(max(now.Sub(ready), 0).Seconds())
	}
	if generation := obj.GetGeneration(); generation != r.measured.generation {
		r.measured.generation, r.measured.wanted = generation, since
		if s, ok := reporting(obj); ok && s.ObservedGeneration == generation && isReady(conditions.Report{Conditions: s.Conditions}) {
			r.measured.wanted = time.Time{} // since a time that this process does not know
		}
	}
}

// reported measures a report about an object. The caller holds the lock of the memory.
func (c *Controller[T]) reported(r *remembered, report conditions.Report) {
	if r.measured.wanted.IsZero() || !isReady(report) {
		return
	}
	readySeconds.WithLabelValues(c.name, c.gvk.Kind).Observe(time.Since(r.measured.wanted).Seconds())
	r.measured.wanted = time.Time{}
}

func isReady(r conditions.Report) bool {
	ready := r.Ready()
	return ready != nil && ready.Status == metav1.ConditionTrue
}

// measure measures the end of the pass.
func (p *pass[T]) measure(end ending) {
	name, kind := p.c.name, p.c.gvk.Kind
	passes.WithLabelValues(name, kind, end.outcome).Inc()
	passSeconds.WithLabelValues(name, kind).Observe(time.Since(p.started).Seconds())
	switch {
	case end.err != nil:
		failures.WithLabelValues(name, kind).Inc()
	case p.writes == 0 && (end.outcome == kindDone.String() || end.outcome == kindAfter.String()):
		idle.WithLabelValues(name, kind).Inc()
	}
	if p.writes > p.budget {
		overBudget.WithLabelValues(name, kind).Inc()
		p.log.Info("the pass wrote more often than its budget allows", "writes", p.writes, "budget", p.budget)
	}
}

package loop

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/metric"
)

var (
	passes       = metric.Passes.CounterVec()
	causes       = metric.Causes.CounterVec()
	failures     = metric.Failures.CounterVec()
	retries      = metric.Retries.CounterVec()
	idle         = metric.Idle.CounterVec()
	passSeconds  = metric.PassSeconds.HistogramVec()
	queueSeconds = metric.QueueSeconds.HistogramVec()
	readySeconds = metric.ReadySeconds.HistogramVec()
	received     = metric.Events.CounterVec()
	writes       = metric.Writes.CounterVec()
	overBudget   = metric.OverBudget.CounterVec()
	limited      = metric.RateLimited.CounterVec()
	staleSkips   = metric.StaleSkips.CounterVec()
	vanishings   = metric.Vanished.CounterVec()
	liveReads    = metric.LiveReads.CounterVec()
	unwritable   = metric.Unwritable.CounterVec()
	population   = &census{gauge: metric.Objects.GaugeVec(), all: map[standing]int{}}
)

// registerMetrics adds them to controller-runtime's registry; doing so again is harmless.
func registerMetrics() {
	for _, c := range []*prometheus.CounterVec{
		passes, causes, failures, retries, idle, received, writes, overBudget, limited, staleSkips, vanishings, liveReads, unwritable,
	} {
		metric.Registered(c)
	}
	for _, h := range []*prometheus.HistogramVec{passSeconds, queueSeconds, readySeconds} {
		metric.Registered(h)
	}
	metric.Registered(population.gauge)
}

// startMetrics has the series of the controller begin at zero, so that the first increase is seen as one. Those of
// outcomes and results appear with their first value.
func (c *Controller[T]) startMetrics() {
	name, kind := c.name, c.gvk.Kind
	for _, counter := range []*prometheus.CounterVec{failures, retries, idle, overBudget, limited, staleSkips, liveReads} {
		counter.WithLabelValues(name, kind)
	}
	for _, reason := range []string{reasonVanished, reasonCleanedUp, reasonGone} {
		vanishings.WithLabelValues(name, kind, reason)
	}
	for _, reason := range []string{statusRefused, statusForbidden, statusNotServed} {
		unwritable.WithLabelValues(name, kind, reason)
	}
}

// standing is how an object is counted in the metric of objects: the values of its labels.
type standing struct{ kind, state, failed, reason string }

// countedAs returns how an object with a report is counted. The words of authors are not used, because they have no end.
func countedAs(kind string, r conditions.Report) standing {
	is := func(t string) bool { return meta.IsStatusConditionTrue(r.Conditions, t) }
	about := r.Event.Reason == "" || r.Event.Reason == r.Reason // rather than about something beside the state
	failed := r.Event.Warning && about || is(api.ConditionStalled) || is(api.ConditionFailed)
	return standing{kind: kind, state: metric.State(r.State), failed: strconv.FormatBool(failed), reason: or(r.Known, metric.Other)}
}

// census counts objects by how they are counted. Its series go when nothing is left to count. The controllers of a
// process share it.
type census struct {
	gauge *prometheus.GaugeVec

	mu  sync.Mutex
	all map[standing]int
}

// add counts some objects more, or less.
func (c *census) add(as standing, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[as] += n; c.all[as] != 0 {
		c.gauge.WithLabelValues(as.kind, as.state, as.failed, as.reason).Set(float64(c.all[as]))
		return
	}
	delete(c.all, as)
	c.gauge.DeleteLabelValues(as.kind, as.state, as.failed, as.reason)
}

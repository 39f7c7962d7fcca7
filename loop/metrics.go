package loop

import (
	"github.com/prometheus/client_golang/prometheus"

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
	objects      = metric.Objects.GaugeVec()
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
	metric.Registered(objects)
}
